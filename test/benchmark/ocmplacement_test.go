// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
)

const (
	// chosenFrom is the number of clusters of the hub, chosenEach the number that each Placement
	// chooses.
	chosenFrom, chosenEach = 1000, 10
	// atATime is how many Placements are decided, and written by the bare client, in parallel.
	atATime = 16
	chosen  = "chosen"
)

// BenchmarkOcmplacement creates 100 and 1,000 Placements of ten clusters each from 1,000, with
// Balance, a score of an add-on and allocatable CPU, and waits until all are satisfied; beside a
// bare client with the same writes. Then single clusters change (ocmchanges_test.go).
func BenchmarkOcmplacement(b *testing.B) {
	bed := newDecisionBed(b)
	var hundred time.Duration
	for _, placements := range []int{100, 1000} {
		b.Run(fmt.Sprintf("hub/%dx%d", placements, chosenFrom), func(b *testing.B) {
			var all, cpu, bareCPU time.Duration
			together(b,
				variant{name: "fleetgate", do: func(ctx context.Context) (time.Duration, error) {
					took, err := bed.inNamespace(ctx, placements, bed.costing(b, &cpu, bed.decided))
					all += took
					return took, err
				}},
				variant{name: "bare", do: func(ctx context.Context) (time.Duration, error) {
					return bed.inNamespace(ctx, placements, bed.costing(b, &bareCPU, bed.bare))
				}})
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N*placements), "cpu-ms/placement")
			b.ReportMetric(float64(cpu)/float64(bareCPU), "x-bare-cpu")
			if all /= time.Duration(b.N); placements == 100 {
				hundred = all
			} else if hundred > 0 {
				b.ReportMetric(float64(all)/float64(hundred), "x-100")
			}
		})
	}
	b.Run("hub/taint", bed.tainted)
	b.Run("hub/statuses", bed.reported)
	b.Run("hub/added", bed.added)
}

// decisionBed is a hub with clusters, and the gateway's part that decides.
type decisionBed struct {
	hub client.WithWatch
	// programs are the processes whose CPU time counts: the hub's, and this one, which runs the
	// gateway's part and the bare client.
	programs []int
	// runs counts namespaces.
	runs atomic.Int64
	// counts are those of the gateway's part.
	counts *decisionCounts
}

func newDecisionBed(b *testing.B) *decisionBed {
	b.Helper()
	ctrl.SetLogger(logr.Discard())
	hub, err := env.Start(b.Context(), env.Options{Name: "decisions"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = hub.Stop(context.WithoutCancel(b.Context())) })
	const group = ".cluster.open-cluster-management.io"
	definitions, err := crds.Named(append(crds.Placements(), "managedclusters"+group, "managedclustersets"+group, "managedclustersetbindings"+group)...)
	if err == nil {
		_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: definitions, MaxTime: time.Minute})
	}
	if err != nil {
		b.Fatal(err)
	}
	kinds := build.Scheme(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme)
	bed := &decisionBed{counts: newDecisionCounts(), programs: []int{hub.APIServer.PID(), hub.Etcd.PID(), os.Getpid()}}
	if bed.hub, err = client.NewWithWatch(build.Unlimited(hub.Config()), client.Options{Scheme: kinds}); err != nil {
		b.Fatal(err)
	}
	bed.fill(b)
	startDecisions(b, hub, kinds, bed.counts)
	// After its first decision it has read the hub.
	if _, err := bed.inNamespace(b.Context(), 1, bed.decided); err != nil {
		b.Fatal(err)
	}
	return bed
}

func startDecisions(b *testing.B, hub *env.Cluster, kinds *runtime.Scheme, counts *decisionCounts) {
	b.Helper()
	again := true
	counted := build.Unlimited(hub.Config())
	counted.Wrap(counts.wrap)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: kinds, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &again},
	})
	if err == nil {
		err = placement.SetupDecisions(mgr, clock.RealClock{}, atATime, counts.metrics)
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	})
}

// fill creates the clusters, their scores and the set of all.
func (d *decisionBed) fill(b *testing.B) {
	b.Helper()
	if err := d.hub.Create(b.Context(), &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(chosen)}); err != nil {
		b.Fatal(err)
	}
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(atATime)
	for n := range chosenFrom {
		group.Go(func() error {
			cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(fmt.Sprintf("cluster-%04d", n))}
			cluster.Labels = map[string]string{clusterv1.ClusterSetLabel: chosen}
			score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: build.In(cluster.Name, "usage")}
			for _, object := range []client.Object{cluster, build.Namespace(cluster.Name), score} {
				if err := d.hub.Create(ctx, object); err != nil {
					return err
				}
			}
			amount := resource.MustParse(fmt.Sprint(1 + n%64))
			cluster.Status.Capacity = clusterv1.ResourceList{corev1.ResourceCPU: amount}
			cluster.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: amount}
			cluster.Status.Conditions = []metav1.Condition{}
			score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: int32(n % 100)}}
			return errors.Join(d.hub.Status().Update(ctx, cluster), d.hub.Status().Update(ctx, score))
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// namespace creates a namespace that is bound to a set.
func (d *decisionBed) namespace(ctx context.Context, set string) (string, error) {
	name := fmt.Sprint("run-", d.runs.Add(1))
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(name, set), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
	return name, errors.Join(d.hub.Create(ctx, build.Namespace(name)), d.hub.Create(ctx, binding))
}

// inNamespace measures in a new namespace, then deletes its Placements: without a garbage collector
// they would be decided again later.
func (d *decisionBed) inNamespace(ctx context.Context, placements int, do func(ctx context.Context, namespace string, placements int) error) (time.Duration, error) {
	namespace, err := d.namespace(ctx, chosen)
	if err != nil {
		return 0, err
	}
	took, err := timed(func(ctx context.Context) error { return do(ctx, namespace, placements) })(ctx)
	return took, errors.Join(err, d.cleared(ctx, namespace))
}

// costing adds the CPU time of all programs during an action to cpu. Unlike elapsed time, other
// load on the machine does not change it.
func (d *decisionBed) costing(b *testing.B, cpu *time.Duration, do func(ctx context.Context, namespace string, placements int) error) func(context.Context, string, int) error {
	used := func() (all time.Duration) {
		for _, pid := range d.programs {
			all += cpuOf(b, pid)
		}
		return all
	}
	return func(ctx context.Context, namespace string, placements int) error {
		before := used()
		err := do(ctx, namespace, placements)
		*cpu += used() - before
		return err
	}
}

// cleared deletes the objects of a namespace.
func (d *decisionBed) cleared(ctx context.Context, namespace string) error {
	return errors.Join(
		d.hub.DeleteAllOf(ctx, &clusterv1beta1.Placement{}, client.InNamespace(namespace)),
		d.hub.DeleteAllOf(ctx, &clusterv1beta1.PlacementDecision{}, client.InNamespace(namespace)))
}

func placementOfTen(namespace string, n int) *clusterv1beta1.Placement {
	ten := int32(chosenEach)
	p := &clusterv1beta1.Placement{ObjectMeta: build.In(namespace, fmt.Sprint("p-", n))}
	p.Spec.NumberOfClusters = &ten
	p.Spec.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{
		{ScoreCoordinate: clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.CoordinateBuiltIn, BuiltIn: "ResourceAllocatableCPU"}, Weight: 1},
		{ScoreCoordinate: clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.CoordinateAddOn, AddOn: &clusterv1beta1.AddOnScore{ResourceName: "usage", ScoreName: "cpu"}}, Weight: 1},
	}
	return p
}

// inTurn calls a function for each number, some in parallel.
func inTurn(ctx context.Context, many int, do func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for n := range many {
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait()
}

// decided creates Placements and waits until all are satisfied.
func (d *decisionBed) decided(ctx context.Context, namespace string, placements int) error {
	if err := inTurn(ctx, placements, func(ctx context.Context, n int) error { return d.hub.Create(ctx, placementOfTen(namespace, n)) }); err != nil {
		return err
	}
	return d.satisfied(ctx, namespace, placements)
}

// satisfied waits until this many Placements are satisfied. It watches, because lists would use the
// CPU that the hub needs.
func (d *decisionBed) satisfied(ctx context.Context, namespace string, placements int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	satisfied := sets.New[string]()
	for satisfied.Len() < placements {
		// The hub ends a watch whose reader is slow; then start again.
		watched, err := d.hub.Watch(ctx, &clusterv1beta1.PlacementList{}, client.InNamespace(namespace))
		if err != nil {
			return fmt.Errorf("watching Placements, of which %d of %d are satisfied: %w", satisfied.Len(), placements, err)
		}
		for event := range watched.ResultChan() {
			p, ok := event.Object.(*clusterv1beta1.Placement)
			if ok && meta.IsStatusConditionTrue(p.Status.Conditions, clusterv1beta1.ConditionSatisfied) {
				satisfied.Insert(p.Name)
			}
			if satisfied.Len() == placements {
				break
			}
		}
		watched.Stop()
	}
	return nil
}

// bare creates Placements that nobody decides, and writes what each decision takes.
func (d *decisionBed) bare(ctx context.Context, namespace string, placements int) error {
	return inTurn(ctx, placements, func(ctx context.Context, n int) error {
		p := placementOfTen(namespace, n)
		p.Annotations = map[string]string{clusterv1beta1.DisableAnnotation: "true"}
		decision := &clusterv1beta1.PlacementDecision{ObjectMeta: build.In(namespace, p.Name+"-decision-1")}
		decision.Labels = map[string]string{clusterv1beta1.PlacementLabel: p.Name}
		if err := errors.Join(d.hub.Create(ctx, p), d.hub.Create(ctx, decision)); err != nil {
			return err
		}
		for i := range chosenEach {
			decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: fmt.Sprintf("cluster-%04d", (n*chosenEach+i)%chosenFrom)})
		}
		p.Status.NumberOfSelectedClusters = chosenEach
		p.Status.Conditions = []metav1.Condition{
			{Type: clusterv1beta1.ConditionMisconfigured, Status: metav1.ConditionFalse, Reason: "Succeedconfigured", LastTransitionTime: metav1.Now()},
			{Type: clusterv1beta1.ConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled", LastTransitionTime: metav1.Now()},
		}
		err := errors.Join(d.hub.Status().Update(ctx, decision), d.hub.Status().Update(ctx, p))
		for i := range 3 {
			err = errors.Join(err, d.hub.Create(ctx, &eventsv1.Event{
				ObjectMeta: build.In(namespace, fmt.Sprintf("%s.%d", p.Name, i)), EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: "DecisionUpdate", Action: "DecisionUpdated",
				ReportingController: "bare", ReportingInstance: "bare", Regarding: corev1.ObjectReference{Namespace: namespace, Kind: "Placement", Name: p.Name}, Note: "Decision is updated",
			}))
		}
		return err
	})
}

func pollEvery(ctx context.Context, interval time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}
