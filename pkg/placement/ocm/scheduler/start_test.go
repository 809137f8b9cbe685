// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// running is a manager that is already running on a busy machine: it returns its cache with a delay
// of a second.
type running struct {
	ctrl.Manager
	scheme *runtime.Scheme
	cache  cache.Cache
	add    func(manager.Runnable)
}

func (r *running) GetScheme() *runtime.Scheme { return r.scheme }
func (r *running) GetLogger() logr.Logger     { return logr.Discard() }

func (r *running) GetControllerOptions() config.Controller {
	again := true
	return config.Controller{SkipNameValidation: &again}
}

func (r *running) GetCache() cache.Cache {
	time.Sleep(time.Second)
	return r.cache
}

func (r *running) Add(runnable manager.Runnable) error {
	r.add(runnable)
	return nil
}

// slowCache has informers that list objects with a delay of ten seconds, except Placements.
type slowCache struct {
	cache.Cache
	informers map[string]toolscache.SharedIndexInformer
}

func (s *slowCache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return s.informers[kindOf(object)], nil
}

func (s *slowCache) WaitForCacheSync(ctx context.Context) bool {
	for _, informer := range s.informers {
		if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return false
		}
	}
	return true
}

// listsOnly makes informers list first and watch then.
type listsOnly struct{ *toolscache.ListWatch }

func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

func newSlowCache(ctx context.Context, hub client.Client) *slowCache {
	s := &slowCache{informers: map[string]toolscache.SharedIndexInformer{}}
	for object, list := range map[client.Object]client.ObjectList{
		&ocmclusterv1beta1.Placement{}: &ocmclusterv1beta1.PlacementList{}, &ocmclusterv1beta1.PlacementDecision{}: &ocmclusterv1beta1.PlacementDecisionList{},
		&clusterv1.ManagedCluster{}: &clusterv1.ManagedClusterList{}, &clusterv1beta2.ManagedClusterSet{}: &clusterv1beta2.ManagedClusterSetList{},
		&clusterv1beta2.ManagedClusterSetBinding{}: &clusterv1beta2.ManagedClusterSetBindingList{}, &clusterv1alpha1.AddOnPlacementScore{}: &clusterv1alpha1.AddOnPlacementScoreList{},
	} {
		listed := &toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				if _, first := object.(*ocmclusterv1beta1.Placement); !first {
					time.Sleep(10 * time.Second)
				}
				return list, hub.List(ctx, list)
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}
		informer := toolscache.NewSharedIndexInformer(listsOnly{listed}, object, 0, nil)
		s.informers[kindOf(object)] = informer
		go informer.RunWithContext(ctx)
	}
	return s
}

// A gateway that restarted on a busy machine took all clusters from all Placements. It decided
// before it had received bindings, and their later events counted as no change.
func TestReconciler_DecidesOnlyAfterInitialLists(t *testing.T) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		placement := placed(nil)
		hub := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&ocmclusterv1beta1.Placement{}, &ocmclusterv1beta1.PlacementDecision{}).WithObjects(
			placement, managed("c1", nil), &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}},
			&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}}).Build()
		recorder := events.NewFakeRecorder(100)
		r := &Reconciler{Client: hub, Live: hub, Recorder: recorder, Clock: clock.RealClock{}, Workers: 4, compiler: compiler,
			cache: newClusterCache(), decisions: newDecisionIndex(), statuses: map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus{}}
		if r.metrics, err = newMetrics(nil); err != nil {
			t.Fatal(err)
		}
		mgr := &running{scheme: scheme, cache: newSlowCache(ctx, hub), add: func(runnable manager.Runnable) { go func() { _ = runnable.Start(ctx) }() }}
		if err := (&crdwait.Kinds{Manager: mgr, Then: r.start}).Start(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		decision := &ocmclusterv1beta1.PlacementDecision{}
		if err := hub.Get(ctx, types.NamespacedName{Namespace: "team", Name: "p-decision-1"}, decision); err != nil {
			t.Fatal(err)
		}
		if got := clustersOf(decision); !slices.Equal(got, []string{"c1"}) {
			t.Errorf("the Placement has %v, want c1", got)
		}
		if count := len(recorder.Events); count != 1 {
			t.Errorf("%d events, want the one of a decision that is made", count)
		}
	})
}
