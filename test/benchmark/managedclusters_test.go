// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// BenchmarkManagedclusters measures how long clusters with klusterlets take to join: from the first
// ManagedCluster until every one is Available without a taint; beside a client that sends the same
// writes to its own hub without a gateway. Then klusterlets renew their Leases once a minute, and
// it counts the hub's writes and measures how late an expired Lease is detected. It also counts the
// writes that OCM's APIs add for fleetgate's members.
//
// A klusterlet here creates its ManagedCluster and its certificate request, waits for the
// certificate, reports twice and renews its Lease. An administrator approves and accepts at once.
// They are goroutines that share a connection, so no certificate is used.
func BenchmarkManagedclusters(b *testing.B) {
	for _, clusters := range []int{100, 1000, 3000} {
		b.Run(fmt.Sprintf("klusterlets=%d", clusters), func(b *testing.B) { joinKlusterlets(b, clusters) })
	}
	for _, members := range []int{100, 1000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) { viewCrowd(b, members) })
	}
}

// idleFor is how long an idle hub is measured. Each klusterlet renews once in that time.
const idleFor = time.Minute

func joinKlusterlets(b *testing.B, clusters int) {
	bed := newKlusterletBed(b, clusters)
	for b.Loop() {
		bare, err := bed.writeBare(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		before, cpu := bed.writes(b), cpuOf(b, bed.fleet.Gateway.PID())
		took, err := bed.join(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		bed.settle(b)
		written := since(before, bed.writes(b))
		for _, w := range written {
			b.Logf("%-7s %7d x %-70s %6d bytes each", w.verb, w.count, w.resource, w.bytes/w.count)
		}
		spent := cpuOf(b, bed.fleet.Gateway.PID()) - cpu
		each := float64(clusters)
		b.ReportMetric(took.Seconds(), "s/join")
		b.ReportMetric(bare.Seconds(), "bare-s/join")
		b.ReportMetric(took.Seconds()/bare.Seconds(), "x-bare")
		b.ReportMetric(float64(total(written)+2*clusters)/each, "writes/cluster") // Leases are made and renewed, and are not counted.
		b.ReportMetric(leastKlusterletWrites, "bare-writes/cluster")
		b.ReportMetric(spent.Seconds()/each*1000, "gateway-ms/cluster")
		bed.reportRights(b, "accept-crowd-ms")
		if err := bed.joinOneByOne(b.Context()); err != nil {
			b.Fatal(err)
		}
		bed.reportRights(b, "accept-ms")
		bed.measureIdle(b)
		b.ReportMetric(float64(bed.lateness(b).Milliseconds()), "unknown-late-ms")
	}
}

// reportRights reports the times from acceptance to the report of the rights, for the clusters that
// joined last. In a crowd they include the load of all others on the hub's API server.
func (k *klusterletBed) reportRights(b *testing.B, what string) {
	b.Helper()
	rights := k.rights()
	b.ReportMetric(float64(rights[len(rights)/2].Milliseconds()), what+"-p50")
	b.ReportMetric(float64(rights[len(rights)*99/100].Milliseconds()), what+"-p99")
}

// measureIdle lets all klusterlets renew their Leases for a while, and logs all other writes.
func (k *klusterletBed) measureIdle(b *testing.B) {
	b.Helper()
	cpu, renewed := cpuOf(b, k.fleet.Gateway.PID()), k.renewed.Load()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- k.keepRenewing(ctx) }()
	before, err := k.joiner.allWrites(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	kinds, begin := k.writes(b), time.Now()
	time.Sleep(idleFor)
	for _, w := range since(kinds, k.writes(b)) {
		b.Logf("idle: %-7s %7d x %s", w.verb, w.count, w.resource)
	}
	after, err := k.joiner.allWrites(b.Context())
	seconds := time.Since(begin).Seconds()
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		b.Fatal(err)
	}
	leases := float64(k.renewed.Load() - renewed)
	b.ReportMetric(leases/seconds, "leases/s")
	b.ReportMetric((after-before-leases)/seconds, "other-writes/s")
	b.ReportMetric((cpuOf(b, k.fleet.Gateway.PID())-cpu).Seconds()/seconds*100, "gateway-idle-cpu-%")
	b.ReportMetric(float64(residentOf(b, k.fleet.Gateway.PID()))/(1<<20), "gateway-MiB")
}

// lateness returns the longest time from the end of a Lease to Unknown, of ten clusters with a
// period of two seconds.
func (k *klusterletBed) lateness(b *testing.B) time.Duration {
	b.Helper()
	names := k.names()[:min(10, k.clusters)]
	late := make([]time.Duration, len(names))
	group, ctx := errgroup.WithContext(b.Context())
	for i, name := range names {
		// Measure each from its own renewal: on a busy machine the first Lease would end long
		// before the last is renewed.
		group.Go(func() (err error) {
			late[i], err = k.latenessOf(ctx, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return slices.Max(late)
}

// latenessOf returns the time from the end of a cluster's Lease to Unknown.
func (k *klusterletBed) latenessOf(ctx context.Context, name string) (time.Duration, error) {
	const period, patience = 2 * time.Second, 5
	// Keep this order: by the previous renewal the Lease would have ended already.
	renewed, err := k.renew(ctx, name)
	if err == nil {
		err = k.patch(ctx, name, fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, int(period.Seconds())))
	}
	if err != nil {
		return 0, err
	}
	cluster, ended := &clusterv1.ManagedCluster{}, renewed.Add(patience*period)
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := k.hub.Get(ctx, client.ObjectKey{Name: name}, cluster)
		return meta.IsStatusConditionPresentAndEqual(cluster.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown), err
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for cluster %s to be Unknown: %w", name, err)
	}
	late := time.Since(ended)
	if late < 0 {
		return 0, fmt.Errorf("cluster %s is Unknown %v before its Lease has ended", name, -late)
	}
	return late, nil
}

// viewCrowd joins fleetgate's members to a hub with OCM's APIs and to one without, to compare them.
func viewCrowd(b *testing.B, members int) {
	measured := func(ocm bool) (all []written, took time.Duration) {
		f := startFleetWith(b, fmt.Sprintf("views-%d-%t", members, ocm), fleet.Options{Members: []string{"member-1"}, OCM: ocm, GatewayArgs: gatewayFlags()})
		defer func() {
			if err := f.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		}()
		// The crowd ends before its hub.
		ctx, cancel := context.WithCancel(b.Context())
		j := newJoiner(b, f)
		c := j.crowd(b)
		defer c.running.Wait()
		defer cancel()
		before, err := j.writes(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if took, err = j.joinSimulated(ctx, c.starter(ctx), members); err != nil {
			b.Fatal(err)
		}
		err = j.settleCrowd(ctx)
		after, failed := j.writes(ctx)
		if err := errors.Join(err, failed); err != nil {
			b.Fatal(err)
		}
		if ocm {
			rate, err := j.idleWrites(ctx, idleFor)
			if err != nil {
				b.Fatal(err)
			}
			views, err := j.writes(ctx)
			if err != nil {
				b.Fatal(err)
			}
			idle := slices.DeleteFunc(since(after, views), func(w written) bool { return !strings.Contains(w.resource, clusterv1.GroupName) })
			b.ReportMetric(rate, "idle-writes/s")
			b.ReportMetric(float64(total(idle)), "idle-view-writes")
			b.ReportMetric(float64(residentOf(b, f.Gateway.PID()))/(1<<20), "gateway-MiB")
		}
		return since(before, after), took
	}
	for b.Loop() {
		without, tookWithout := measured(false)
		with, took := measured(true)
		for _, w := range since(without, with) {
			b.Logf("more with views: %-7s %5d x %s", w.verb, w.count, w.resource)
		}
		writes, bare := float64(total(with))/float64(members), float64(total(without))/float64(members)
		b.ReportMetric(took.Seconds(), "s/join")
		b.ReportMetric(took.Seconds()/tookWithout.Seconds(), "x-without")
		b.ReportMetric(writes, "writes/member")
		b.ReportMetric(writes-bare, "view-writes/member")
	}
}
