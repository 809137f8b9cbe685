// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// measureUnchanged starts a gateway on an unchanged hub, and measures the time until it has
// reconciled every binding and is idle, and the writes until then, without members' reports.
func (p *placementBed) measureUnchanged(b *testing.B) {
	b.Helper()
	if err := p.fleet.Gateway.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	looking, began := p.begin(b, "unchanged"), time.Now()
	if err := p.fleet.Gateway.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	p.awaitLooked(b)
	took := time.Since(began)
	written := slices.DeleteFunc(looking.end(b), written.isReport)
	p.figure("fleetgate/unchanged", took, map[string]float64{
		"gateway-MiB": mebibytes(residentOf(b, p.fleet.Gateway.PID())), "writes": float64(total(written)),
	})
}

var (
	looks  = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="binding\.works",[^}]*\} (\S+)$`)
	queued = regexp.MustCompile(`(?m)^(?:workqueue_depth|workqueue_unfinished_work_seconds)\{[^}]*\} (\S+)$`)
)

// awaitLooked waits until the gateway has reconciled all bindings and was idle in two checks.
func (p *placementBed) awaitLooked(b *testing.B) {
	b.Helper()
	const interval, times = 500 * time.Millisecond, 2
	gateway := apiClient{url: p.fleet.GatewayMetrics(), http: http.DefaultClient}
	idle := 0
	err := wait.PollUntilContextTimeout(b.Context(), interval, placementPatience, true, func(ctx context.Context) (bool, error) {
		var metrics bytes.Buffer
		if err := gateway.get(ctx, "", &metrics); err != nil {
			//lint:ignore nilerr It is about to start.
			return false, nil
		}
		looked, err := sumOf(looks, metrics.String())
		if err != nil {
			return false, err
		}
		left, err := sumOf(queued, metrics.String())
		if err != nil {
			return false, err
		}
		if idle++; looked < float64(p.works()) || left > 0 {
			idle = 0
		}
		return idle == times, nil
	})
	if err != nil {
		b.Fatalf("waiting for a gateway that has nothing to do: %v", err)
	}
}

// sumOf adds the values of the metrics that match.
func sumOf(lines *regexp.Regexp, metrics string) (float64, error) {
	sum := 0.0
	for _, match := range lines.FindAllStringSubmatch(metrics, -1) {
		value, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return 0, fmt.Errorf("reading metrics: %w", err)
		}
		sum += value
	}
	return sum, nil
}
