// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fleetgate.io/fleetgate/test/env"
)

const (
	// profilesVariable names a folder for CPU profiles of the hub's API server and of the
	// gateway; without it there are none, since taking them costs a part of what is measured.
	profilesVariable = "FLEETGATE_PROFILES"
	// gatewayProfiles is where the gateway serves its own then.
	gatewayProfiles = "127.0.0.1:6060"
	profilePath     = "/debug/pprof/profile?seconds=5"
	// flagsVariable has further flags of the gateway, to compare one way with another.
	flagsVariable = "FLEETGATE_GATEWAY_FLAGS"
)

// gatewayFlags are those of a gateway that is profiled, and what else is asked for.
func gatewayFlags() []string {
	if os.Getenv(profilesVariable) == "" {
		return furtherFlags()
	}
	return append(furtherFlags(), "--pprof-bind-address="+gatewayProfiles)
}

// furtherFlags are those that flagsVariable asks for: all that several gateways can share.
func furtherFlags() []string { return strings.Fields(os.Getenv(flagsVariable)) }

// phase is a part of a run of which one wants to know what the hub was busy with.
type phase struct {
	bed    *placementBed
	name   string
	before []written
	cpu    map[string]time.Duration
	done   func()
}

// cpu is what each program has used so far. The benchmark is the members too.
func (p *placementBed) cpu(b *testing.B) map[string]time.Duration {
	b.Helper()
	all := map[string]time.Duration{"benchmark": cpuOf(b, os.Getpid())}
	for name, process := range map[string]*env.Process{
		"API server": p.fleet.Hub.APIServer, "etcd": p.fleet.Hub.Etcd, "controller manager": p.fleet.Hub.ControllerManager, "gateway": p.fleet.Gateway,
	} {
		if process.Running() {
			all[name] = cpuOf(b, process.PID())
		}
	}
	return all
}

// begin takes profiles of the hub and the gateway, as <hub|gateway>-<name>-<members>-<nth>.pprof,
// until the phase ends: `go tool pprof -top` adds several up.
func (p *placementBed) begin(b *testing.B, name string) *phase {
	b.Helper()
	ph := &phase{bed: p, name: fmt.Sprintf("%s-%d", name, p.members), before: p.writes(b), cpu: p.cpu(b)}
	ph.done = profiles(b, ph.name, map[string]apiClient{"hub": p.api, "gateway": {url: "http://" + gatewayProfiles, http: http.DefaultClient}})
	return ph
}

// profiles takes CPU profiles, one after another, until the function that it returns is called, as
// <whose>-<name>-<nth>.pprof, if they are asked for.
func profiles(b *testing.B, name string, from map[string]apiClient) (done func()) {
	b.Helper()
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	for whose, from := range from {
		running.Go(func() {
			for nth := 0; ctx.Err() == nil; nth++ {
				if err := from.profile(ctx, filepath.Join(dir, fmt.Sprintf("%s-%s-%02d.pprof", whose, name, nth))); err != nil && ctx.Err() == nil {
					b.Logf("no profile of %s in %s: %v", whose, name, err) // A gateway is away while it starts again.
					return
				}
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// profile writes one profile of five seconds to a file, and leaves none behind that was cut off.
func (c apiClient) profile(ctx context.Context, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	err = c.get(ctx, profilePath, file)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// end logs what was written meanwhile, by kind and verb with the bytes that were sent, and
// what each program has used, and returns the former.
func (ph *phase) end(b *testing.B) []written {
	b.Helper()
	ph.done()
	for name, used := range ph.bed.cpu(b) {
		b.Logf("%s: %6.2f s of CPU time of the %s", ph.name, (used - ph.cpu[name]).Seconds(), name)
	}
	more := since(ph.before, ph.bed.writes(b))
	for _, w := range more {
		b.Logf("%s: %-7s %7d x %-60s %8d bytes each", ph.name, w.verb, w.count, w.resource, w.bytes/w.count)
	}
	return more
}
