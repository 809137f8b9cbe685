// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
)

const (
	// few is a separate set of 100 clusters, and fewWanted the number of Placements that choose
	// from it.
	few       = "few"
	fewOf     = 100
	fewWanted = 200
	// decidedMetric counts decisions.
	decidedMetric = "scheduling_scheduling_duration_seconds"
)

// decisionCounts counts the gateway's writes of decisions and statuses, and its decisions.
type decisionCounts struct {
	metrics *prometheus.Registry
	writes  atomic.Int64
	// last is the time of the last write, in nanoseconds.
	last atomic.Int64
}

func newDecisionCounts() *decisionCounts { return &decisionCounts{metrics: prometheus.NewRegistry()} }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (d *decisionCounts) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/placement") {
			d.writes.Add(1)
			d.last.Store(time.Now().UnixNano())
		}
		return response, err
	})
}

// decisions returns the number of decisions so far.
func (d *decisionCounts) decisions() (int64, error) {
	families, err := d.metrics.Gather()
	for _, family := range families {
		if family.GetName() == decidedMetric {
			return int64(family.Metric[0].Histogram.GetSampleCount()), err
		}
	}
	return 0, err
}

// done counts the work that an action causes, and measures the time until the last write, after
// which there was none for a while.
func (d *decisionCounts) done(ctx context.Context, because func(context.Context) error) (writes, decisions int64, took time.Duration, err error) {
	writesBefore := d.writes.Load()
	decisionsBefore, err := d.decisions()
	if err != nil {
		return 0, 0, 0, err
	}
	begin := time.Now()
	if err := because(ctx); err != nil {
		return 0, 0, 0, err
	}
	end := time.Now()
	wroteWas, decidedWas := int64(-1), int64(-1)
	err = pollEvery(ctx, time.Second, func(context.Context) (bool, error) {
		decided, err := d.decisions()
		wrote := d.writes.Load()
		settled := wrote == wroteWas && decided == decidedWas
		wroteWas, decidedWas = wrote, decided
		return settled, err
	})
	if last := time.Unix(0, d.last.Load()); last.After(end) {
		end = last
	}
	after, decisionsErr := d.decisions()
	return d.writes.Load() - writesBefore, after - decisionsBefore, end.Sub(begin), errors.Join(err, decisionsErr)
}

// tainted measures from a taint on one cluster, or its removal, until a Placement of all clusters
// is written; beside a bare client with the same writes.
func (d *decisionBed) tainted(b *testing.B) {
	namespace, err := d.namespace(b.Context(), chosen)
	if err != nil {
		b.Fatal(err)
	}
	p := &clusterv1beta1.Placement{ObjectMeta: build.In(namespace, "all")}
	if err := errors.Join(d.hub.Create(b.Context(), p), d.has(b.Context(), p, chosenFrom)); err != nil {
		b.Fatal(err)
	}
	alike, err := d.alike(b.Context(), p)
	if err != nil {
		b.Fatal(err)
	}
	before, changes := d.counts.writes.Load(), 0
	together(b, variant{name: "fleetgate", do: timed(func(ctx context.Context) error {
		changes++
		clusters := int32(chosenFrom)
		taints := "null"
		if changes%2 == 1 {
			clusters, taints = clusters-1, `[{"key": "a", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]`
		}
		return errors.Join(d.taint(ctx, "cluster-0000", taints), d.has(ctx, p, clusters))
	})}, variant{name: "bare", do: timed(alike)})
	b.ReportMetric(float64(d.counts.writes.Load()-before)/float64(changes), "writes/change")
	if err := errors.Join(d.taint(b.Context(), "cluster-0000", "null"), d.cleared(b.Context(), namespace)); err != nil {
		b.Fatal(err)
	}
}

func (d *decisionBed) taint(ctx context.Context, cluster, taints string) error {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"taints": `+taints+`}}`))
	return d.hub.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(cluster)}, patch)
}

// has waits until a Placement's status reports this many clusters.
func (d *decisionBed) has(ctx context.Context, p *clusterv1beta1.Placement, clusters int32) error {
	return pollEvery(ctx, 5*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := d.hub.Get(ctx, client.ObjectKeyFromObject(p), p)
		return p.Status.NumberOfSelectedClusters == clusters, err
	})
}

// alike returns the writes of one change of a cluster: the cluster, one decision's status, and that
// of a Placement. They go to copies that nobody decides on.
func (d *decisionBed) alike(ctx context.Context, p *clusterv1beta1.Placement) (func(context.Context) error, error) {
	decision := &clusterv1beta1.PlacementDecision{}
	if err := d.hub.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.Name + "-decision-1"}, decision); err != nil {
		return nil, err
	}
	other := &clusterv1beta1.Placement{ObjectMeta: build.In(p.Namespace, "bare")}
	other.Annotations = map[string]string{clusterv1beta1.DisableAnnotation: "true"}
	slice := &clusterv1beta1.PlacementDecision{ObjectMeta: build.In(p.Namespace, "bare-decision-1")}
	aside := &clusterv1.ManagedCluster{ObjectMeta: build.Named("aside")}
	if err := errors.Join(d.hub.Create(ctx, other), d.hub.Create(ctx, slice), client.IgnoreAlreadyExists(d.hub.Create(ctx, aside))); err != nil {
		return nil, err
	}
	rounds := int32(0)
	return func(ctx context.Context) error {
		rounds++
		slice.Status.Decisions = decision.Status.Decisions[:len(decision.Status.Decisions)-int(rounds%2)]
		other.Status = p.Status
		other.Status.NumberOfSelectedClusters = rounds
		taints := fmt.Sprintf(`[{"key": "a", "value": "%d", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]`, rounds)
		return errors.Join(d.taint(ctx, "aside", taints), d.hub.Status().Update(ctx, slice), d.hub.Status().Update(ctx, other))
	}, nil
}

// reported counts the gateway's work when all clusters report a status in which nothing changed
// that Placements use.
func (d *decisionBed) reported(b *testing.B) {
	namespace, err := d.namespace(b.Context(), chosen)
	if err == nil {
		err = d.decided(b.Context(), namespace, 100)
	}
	if err != nil {
		b.Fatal(err)
	}
	var writes, decisions int64
	var spent time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		wrote, decided, took, err := d.counts.done(b.Context(), func(ctx context.Context) error {
			return inTurn(ctx, chosenFrom, func(ctx context.Context, n int) error {
				is := &clusterv1.ManagedCluster{}
				if err := d.hub.Get(ctx, client.ObjectKey{Name: fmt.Sprintf("cluster-%04d", n)}, is); err != nil {
					return err
				}
				is.Status.Conditions = []metav1.Condition{{
					Type: "Reported", Status: metav1.ConditionTrue, Reason: "Reported", Message: fmt.Sprint(rounds), LastTransitionTime: metav1.Now(),
				}}
				return d.hub.Status().Update(ctx, is)
			})
		})
		if err != nil {
			b.Fatal(err)
		}
		writes, decisions, spent = writes+wrote, decisions+decided, spent+took
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
	b.ReportMetric(float64(decisions)/float64(b.N), "decisions/op")
	if err := d.cleared(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
}

// added measures a cluster that joins a set of 100, from which 200 Placements choose ten each,
// balanced, until the last write.
func (d *decisionBed) added(b *testing.B) {
	err := client.IgnoreAlreadyExists(d.hub.Create(b.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(few)}))
	if err == nil {
		err = inTurn(b.Context(), fewOf, func(ctx context.Context, n int) error { return client.IgnoreAlreadyExists(d.join(ctx, n)) })
	}
	namespace, namespaceErr := d.namespace(b.Context(), few)
	if err = errors.Join(err, namespaceErr); err == nil {
		err = d.balanced(b.Context(), namespace)
	}
	if err != nil {
		b.Fatal(err)
	}
	var writes, decisions int64
	var spent time.Duration
	next := int(d.runs.Load()) * fewOf
	for b.Loop() {
		next++
		wrote, decided, took, err := d.counts.done(b.Context(), func(ctx context.Context) error { return d.join(ctx, next) })
		if err != nil {
			b.Fatal(err)
		}
		writes, decisions, spent = writes+wrote, decisions+decided, spent+took
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(float64(writes)/float64(b.N*fewWanted), "writes/placement")
	b.ReportMetric(float64(decisions)/float64(b.N*fewWanted), "decisions/placement")
	if err := d.cleared(b.Context(), namespace); err != nil {
		b.Fatal(err)
	}
}

// join creates a cluster of the smaller set.
func (d *decisionBed) join(ctx context.Context, n int) error {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(fmt.Sprintf("few-%05d", n))}
	cluster.Labels = map[string]string{clusterv1.ClusterSetLabel: few}
	return d.hub.Create(ctx, cluster)
}

// balanced creates Placements of ten clusters with the default scores, and waits until all are
// decided.
func (d *decisionBed) balanced(ctx context.Context, namespace string) error {
	ten := int32(chosenEach)
	err := inTurn(ctx, fewWanted, func(ctx context.Context, n int) error {
		p := &clusterv1beta1.Placement{ObjectMeta: build.In(namespace, fmt.Sprint("p-", n))}
		p.Spec.NumberOfClusters = &ten
		return d.hub.Create(ctx, p)
	})
	if err != nil {
		return err
	}
	return d.satisfied(ctx, namespace, fewWanted)
}
