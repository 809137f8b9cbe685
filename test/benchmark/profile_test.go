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

	"fleetgate.io/fleetgate/test/support/env"
)

const (
	// profilesVariable is a directory for CPU profiles of the hub's API server and of the gateway.
	// If unset, there are none, because they slow down the measured programs.
	profilesVariable = "FLEETGATE_PROFILES"
	// gatewayProfiles is the address at which the gateway then serves its profiles.
	gatewayProfiles = "127.0.0.1:6060"
	profilePath     = "/debug/pprof/profile?seconds=5"
	// flagsVariable has further flags of the gateway, to compare variants.
	flagsVariable = "FLEETGATE_GATEWAY_FLAGS"
)

// gatewayFlags are the flags of a profiled gateway, and the further flags.
func gatewayFlags() []string {
	if os.Getenv(profilesVariable) == "" {
		return furtherFlags()
	}
	return append(furtherFlags(), "--pprof-bind-address="+gatewayProfiles)
}

// furtherFlags are the flags from flagsVariable that several gateways can share.
func furtherFlags() []string { return strings.Fields(os.Getenv(flagsVariable)) }

// phase is a part of a run for which the load of the hub is logged.
type phase struct {
	bed    *placementBed
	name   string
	before []written
	cpu    map[string]time.Duration
	done   func()
}

// cpu is the CPU time of each program so far. The benchmark process simulates the members.
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

// begin profiles hub and gateway as <hub|gateway>-<name>-<members>-<nth>.pprof until the phase
// ends. `go tool pprof -top` adds several up.
func (p *placementBed) begin(b *testing.B, name string) *phase {
	b.Helper()
	ph := &phase{bed: p, name: fmt.Sprintf("%s-%d", name, p.members), before: p.writes(b), cpu: p.cpu(b)}
	ph.done = profiles(b, ph.name, map[string]apiClient{"hub": p.api, "gateway": {url: "http://" + gatewayProfiles, http: http.DefaultClient}})
	return ph
}

// profiles takes CPU profiles one after another until the returned function is called, as
// <whose>-<name>-<nth>.pprof, if profilesVariable is set.
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
					b.Logf("no profile of %s in %s: %v", whose, name, err) // The gateway may be restarting.
					return
				}
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// profile writes one profile of five seconds, and removes an incomplete one.
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

// end logs and returns the writes since begin, by kind and verb with bytes, and logs the CPU time
// of each program.
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
