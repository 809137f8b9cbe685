// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// hubOf is a hub with the objects of a world.
func hubOf(t *testing.T, w *world, funcs interceptor.Funcs) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{w.Run}
	for _, b := range w.Bindings {
		objects = append(objects, b)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&placementv1beta1.ClusterStagedUpdateRun{}, runsByPlacement, func(o client.Object) []string {
			return []string{o.(placementv1beta1.UpdateRunObject).GetSpec().PlacementName}
		}).Build()
}

// A run wrote the spec of a binding, and then its condition RolloutStarted.
func TestTake_WritesEachBindingOnce(t *testing.T) {
	w := begun(t, stageConfigs{stage("all", "", atOnce(intstr.FromString("100%")))}, "a", "b", "c")
	var mu sync.Mutex // Guards writes: a run writes bindings in parallel.
	writes := map[string]int{}
	count := func(o client.Object) {
		mu.Lock()
		defer mu.Unlock()
		writes[o.GetName()]++
	}
	hub := hubOf(t, w, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			count(o)
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			count(o)
			return c.SubResource(of).Patch(ctx, o, patch, opts...)
		},
	})
	for _, b := range w.Bindings { // With their resourceVersion.
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
	}
	step, no := Next(&w.Observed)
	if no != nil {
		t.Fatal(no)
	}
	if err := (&Reconciler{Client: hub}).take(t.Context(), w.Run, step); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(writes), "map[to-a:1 to-b:1 to-c:1]"; got != want {
		t.Errorf("writes = %s, want %s", got, want)
	}
	stored := &placementv1beta1.ClusterResourceBinding{}
	if err := hub.Get(t.Context(), client.ObjectKey{Name: "to-a"}, stored); err != nil {
		t.Fatal(err)
	}
	stored.Generation++ // An API server counts changes of the spec.
	if !placementv1beta1.StartedByRun(stored) || stored.Spec.ResourceSnapshotName != "web-7-snapshot" {
		t.Errorf("rollout of the member is not started: %+v", stored)
	}
}

// A run was reconciled, and its whole status written, for each change of a binding.
func TestRunsAfter_GathersChangesOfBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var members []string
		for i := range 100 {
			members = append(members, fmt.Sprintf("m%d", i))
		}
		w := begun(t, stageConfigs{stage("all", "", nil)}, members...)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		changes := (&Reconciler{Client: hubOf(t, w, interceptor.Funcs{})}).runsAfter(bindingSettle)
		for _, b := range w.Bindings {
			b.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: "web"})
			changes.Update(t.Context(), event.UpdateEvent{ObjectOld: b, ObjectNew: b}, queue)
			time.Sleep(bindingSettle / 200)
		}
		if synctest.Wait(); queue.Len() != 0 {
			t.Errorf("%d runs are queued at once", queue.Len())
		}
		time.Sleep(bindingSettle)
		if synctest.Wait(); queue.Len() != 1 {
			t.Errorf("%d runs are queued, want 1", queue.Len())
		}
	})
}

func TestBindingChanges_PassWhatNextUses(t *testing.T) {
	type binding = *placementv1beta1.ClusterResourceBinding
	cases := map[string]struct {
		change func(*world, binding)
		want   bool
	}{
		"spec":                {func(_ *world, b binding) { b.Generation++ }, true},
		"whether it started":  {func(_ *world, b binding) { b.Annotations = nil }, true},
		"whether it arrived":  {func(w *world, _ binding) { w.works("a") }, true},
		"whether it is going": {func(_ *world, b binding) { b.DeletionTimestamp = new(metav1.Now()) }, true},
		"progress of a Work": {func(_ *world, b binding) {
			b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionApplied, ObservedGeneration: b.Generation}}
		}, false},
		"labels": {func(_ *world, b binding) { b.Labels = map[string]string{"a": "b"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, "a")
			after := w.binding("a").(binding)
			after.Annotations = map[string]string{placementv1beta1.RolloutStartedAnnotation: fmt.Sprint(after.Generation)}
			before := after.DeepCopy()
			tc.change(w, after)
			if got := bindingChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("passes: %t, want %t", got, tc.want)
			}
		})
	}
}
