// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreignObjects is the number of objects that no placement selects, of a type that some select.
const foreignObjects = 100_000

// sizeVariable overrides the measured sizes, as <placements>x<members>.
const sizeVariable = "FLEETGATE_PLACEMENTS"

// placementSize is a number of placements and of members.
type placementSize struct{ placements, members int }

func placementSizes(b *testing.B) []placementSize {
	b.Helper()
	text := os.Getenv(sizeVariable)
	if text == "" {
		return []placementSize{{20, 100}, {10, 1000}}
	}
	var size placementSize
	if _, err := fmt.Sscanf(text, "%dx%d", &size.placements, &size.members); err != nil {
		b.Fatalf("%s is %q and not such as 4x500: %v", sizeVariable, text, err)
	}
	return []placementSize{size}
}

// BenchmarkPlacement measures how long placements take on the hub, with a real hub and a real
// gateway. This process simulates members: it writes heartbeats and the status of Works at once.
// Everything runs once, whatever -benchtime says. Figures, for a number of members:
//
//   - join: from the first MemberCluster until all are joined.
//   - scheduled, works, available: from the first placement until the last binding, the
//     last Work, and the last placement that says Available.
//   - change: from a write of one ConfigMap until it is in the Works of all members.
//   - change-all: from writes of a ConfigMap of each placement until they are in all Works.
//   - unchanged: from the start of a new gateway without changes until it has reconciled everything
//     and is idle.
//   - restart: from the start of a new gateway until a change made just then is in them.
//
// The baseline is a client that makes the least writes with the same concurrency and no gateway:
// for join the objects of a member, copied from the gateway's, with two statuses and the report and
// Lease of its agent; for scheduled one binding each; for works and available one binding and one
// Work each, and one status of both; for changes an update of the Works. It does not depend on what
// the gateway writes.
func BenchmarkPlacement(b *testing.B) {
	for _, size := range placementSizes(b) {
		if b.Failed() || testing.Short() && size.members > 500 {
			return
		}
		p := newPlacementBed(b, size.placements, size.members)
		p.measure(b)
		if size.members == 100 && !testing.Short() {
			p.measureForeign(b)
		}
		p.measureBare(b)
		p.print(b)
		if err := p.fleet.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// figure is a printed line.
type figure struct {
	name string
	took time.Duration
	more map[string]float64
}

func (p *placementBed) figure(name string, took time.Duration, more map[string]float64) {
	p.figures = append(p.figures, figure{fmt.Sprintf("%s-%d", name, p.members), took, more})
}

func (p *placementBed) print(b *testing.B) {
	for _, f := range p.figures {
		b.Run(f.name, func(b *testing.B) {
			b.ReportMetric(float64(f.took.Nanoseconds()), "ns/op")
			reportAll(b, f.more)
		})
	}
}

func (p *placementBed) measure(b *testing.B) {
	p.settle(b) // A gateway installs its objects after the start.
	joining, began := p.begin(b, "join"), time.Now()
	p.join(b)
	p.tookJoin = time.Since(began)
	joining.end(b)

	p.prepare(b, p.placementNames())
	p.settle(b)
	cpu := cpuOf(b, p.fleet.Gateway.PID())
	placing := p.begin(b, "place")
	began = p.placeUntilWorks(b)
	untilWorks := placing.end(b)
	reporting := p.begin(b, "report")
	p.awaitAvailable(b, p.placementNames())
	p.tookAvailable = time.Since(began)
	untilAvailable := total(untilWorks) + total(reporting.end(b))
	own := int(p.agents.wrote.Load()) + p.placements
	p.available = map[string]float64{
		"writes/work":         float64(untilAvailable) / float64(p.works()),
		"gateway-writes/work": float64(untilAvailable-own) / float64(p.works()),
		"gateway-cpu-s":       (cpuOf(b, p.fleet.Gateway.PID()) - cpu).Seconds(),
		"gateway-MiB":         mebibytes(residentOf(b, p.fleet.Gateway.PID())),
	}
	p.settle(b)

	p.tookChange, _ = p.measureChange(b, "change", 1)
	p.tookChangeAll, p.quietChangeAll = p.measureChange(b, "change-all", p.placements)

	p.measureUnchanged(b)
	if err := p.fleet.Gateway.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	p.change(b, 1)
	restarting := p.begin(b, "restart")
	began = time.Now()
	if err := p.fleet.Gateway.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	p.awaitChange(b, 1)
	took := time.Since(began)
	p.settle(b)
	p.figure("fleetgate/restart", took, map[string]float64{
		"gateway-MiB": mebibytes(residentOf(b, p.fleet.Gateway.PID())),
		"writes":      float64(total(restarting.end(b))),
	})
}

// placeUntilWorks creates the placements, waits for the last Work and returns the start time.
func (p *placementBed) placeUntilWorks(b *testing.B) (began time.Time) {
	b.Helper()
	began = time.Now()
	p.place(b)
	p.await(b, "bindings", func() bool { return p.bindings.len() >= p.works() })
	p.tookScheduled = time.Since(began)
	p.await(b, "Works", func() bool { return p.agents.works.len() >= p.works() })
	p.tookWorks = time.Since(began)
	return began
}

// measureForeign creates objects that no placement selects, and prints their cost.
func (p *placementBed) measureForeign(b *testing.B) {
	pid := p.fleet.Gateway.PID()
	memory, cpu, began := residentOf(b, pid), cpuOf(b, pid), time.Now()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	if err := p.hub.Create(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(concurrency)
	for i := range foreignObjects {
		group.Go(func() error {
			return p.hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("foreign-%d", i)}})
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	p.settle(b)
	p.figures = append(p.figures, figure{fmt.Sprintf("fleetgate/foreign-%d", foreignObjects), time.Since(began), map[string]float64{
		"gateway-cpu-s":     (cpuOf(b, pid) - cpu).Seconds(),
		"gateway-added-MiB": mebibytes(residentOf(b, pid) - memory),
	}})
}

// measureBare sends the least writes without a gateway, and compares.
func (p *placementBed) measureBare(b *testing.B) {
	least, err := p.leastWrites(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	joins, err := p.leastJoin(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := p.fleet.Gateway.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	p.end()
	timed := func(what string, write func(context.Context) error) time.Duration {
		writing, began := p.begin(b, "bare-"+what), time.Now()
		if err := write(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		writing.end(b)
		return took
	}
	join := timed("join", func(ctx context.Context) error { return joins.write(ctx, p.members) })
	bind := timed("scheduled", least.bind)
	all := bind + timed("works", least.deliver)
	change := timed("change", func(ctx context.Context) error { return least.change(ctx, p.members) })
	changeAll := timed("change-all", func(ctx context.Context) error { return least.change(ctx, p.works()) })

	p.compare("join", p.tookJoin, join, nil)
	p.compare("scheduled", p.tookScheduled, bind, nil)
	p.compare("works", p.tookWorks, all, nil)
	p.compare("available", p.tookAvailable, all, p.available)
	p.compare("change", p.tookChange, change, nil)
	p.compare("change-all", p.tookChangeAll, changeAll, map[string]float64{"s-until-quiet": p.quietChangeAll.Seconds()})
	p.figure("bare/join", join, map[string]float64{"writes/member": float64(joins.writes())})
	p.figure("bare/scheduled", bind, nil)
	p.figure("bare/works-and-available", all, map[string]float64{"writes/work": leastWritesPerWork})
	p.figure("bare/change", change, nil)
	p.figure("bare/change-all", changeAll, nil)
}

// compare returns a figure with the ratio to the bare client.
func (p *placementBed) compare(what string, took, bare time.Duration, more map[string]float64) {
	if more == nil {
		more = map[string]float64{}
	}
	more["x-bare"] = float64(took) / float64(bare)
	p.figure("fleetgate/"+what, took, more)
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
