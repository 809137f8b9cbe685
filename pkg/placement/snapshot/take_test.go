// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// nothing selects nothing, and no run needs any snapshot.
type nothing struct{}

func (nothing) Select(context.Context, types.NamespacedName, []placementv1beta1.ResourceSelectorTerm, *selection.Bound) (selection.Selected, error) {
	return selection.Selected{}, nil
}
func (nothing) Forget(types.NamespacedName) {}

// chosen selects one object with the configured content.
type chosen struct {
	nothing
	says string
}

func (c *chosen) Select(context.Context, types.NamespacedName, []placementv1beta1.ResourceSelectorTerm, *selection.Bound) (selection.Selected, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"says": c.says}}}
	return selection.Selected{Objects: []*unstructured.Unstructured{object}}, nil
}

func (nothing) Needed(context.Context, types.NamespacedName) ([]string, error) { return nil, nil }

// A re-created placement adopted the snapshot of its deleted predecessor, which the cache still had.
// Its bindings then named a snapshot that was deleted.
func TestTake_IgnoresSnapshotsOfDeletedPredecessor(t *testing.T) {
	now := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "now"}}
	before := desiredResourceSnapshots(now, split(nil, sizeLimit), resourceHash(nil), 0, Envelopes{})[0]
	before.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ClusterResourcePlacement", Name: "p", UID: "before", Controller: new(true)}})
	hub := hubWith(t, now, before)
	r := &Reconciler{Client: hub, Live: hub, Selector: nothing{}, Users: nothing{}}
	first, err := r.Take(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(first, now) || !objects.IsLatest(first) {
		t.Errorf("took %s, owned by %v", first.Name, first.OwnerReferences)
	}
	again, err := r.Take(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if again.Name != first.Name {
		t.Errorf("took %s after %s without a change", again.Name, first.Name)
	}
}

func TestTake_RefusesSingleResourcesOfANamespaceThatDoesNotExist(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	placement.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{
		{Version: "v1", Kind: "Namespace", Name: "shop", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors},
	}
	hub := hubWith(t, placement)
	r := &Reconciler{Client: hub, Live: hub, Selector: nothing{}, Users: nothing{}}
	_, err := r.Take(t.Context(), placement)
	if refused := refusal.Of(err); refused == nil || refused.Message != noNamespaceSelected {
		t.Errorf("before the first snapshot: %v", err)
	}
	latest := desiredResourceSnapshots(placement, split(nil, sizeLimit), "other", 0, Envelopes{})[0]
	latest.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ClusterResourcePlacement", Name: "p", UID: "u", Controller: new(true)}})
	if err := hub.Create(t.Context(), latest); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Take(t.Context(), placement); err != nil {
		t.Errorf("after the namespace was deleted: %v", err)
	}
}

func hubWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	byPlacement := func(o client.Object) []string {
		return []string{o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&placementv1beta1.ClusterResourcePlacement{}).
		WithIndex(&placementv1beta1.ClusterResourceSnapshot{}, "placement", byPlacement).
		WithIndex(&placementv1beta1.ClusterResourceBinding{}, "placement", byPlacement).Build()
}

// Each case lists what is selected at which second, and how long its snapshot has to wait. The first
// snapshot is created at second 0.
func TestTake_GathersChangesForTheIntervals(t *testing.T) {
	type step struct {
		at   int
		says string
		// wait is the remaining time in seconds; zero if a snapshot was created.
		wait int
	}
	tests := map[string]struct {
		least, collection int
		steps             []step
	}{
		"no intervals":                   {0, 0, []step{{1, "b", 0}, {1, "c", 0}}},
		"latest snapshot is too young":   {30, 0, []step{{10, "b", 20}, {29, "c", 1}, {30, "c", 0}, {31, "d", 29}}},
		"latest snapshot is old enough":  {30, 0, []step{{40, "b", 0}}},
		"changes are gathered":           {0, 15, []step{{40, "b", 15}, {50, "c", 5}, {55, "c", 0}, {56, "d", 15}}},
		"later of both counts":           {30, 15, []step{{20, "b", 15}, {35, "b", 0}, {36, "c", 29}, {65, "c", 0}}},
		"reverted change does not count": {0, 15, []step{{40, "b", 15}, {45, "a", 0}, {100, "c", 15}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			begin := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
			clock, selector := clocktesting.NewFakePassiveClock(begin), &chosen{says: "a"}
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "now"}}
			hub := interceptor.NewClient(hubWith(t, placement).(client.WithWatch), interceptor.Funcs{
				// An API server sets the creation time.
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					o.SetCreationTimestamp(metav1.NewTime(clock.Now()))
					return c.Create(ctx, o, options...)
				},
			})
			r := &Reconciler{Client: hub, Live: hub, Selector: selector, Users: nothing{}, Clock: clock}
			intervals := Intervals{Least: time.Duration(tc.least) * time.Second, Collection: time.Duration(tc.collection) * time.Second}
			latest, wait, err := r.take(t.Context(), placement, intervals)
			if err != nil || wait != 0 {
				t.Fatalf("first snapshot waits %s, %v", wait, err)
			}
			for _, s := range tc.steps {
				clock.SetTime(begin.Add(time.Duration(s.at) * time.Second))
				selector.says = s.says
				before := latest.Name
				if latest, wait, err = r.take(t.Context(), placement, intervals); err != nil {
					t.Fatal(err)
				}
				if wait != time.Duration(s.wait)*time.Second {
					t.Errorf("second %d: waits %s, want %d s", s.at, wait, s.wait)
				}
				if made := latest.Name != before; made != (s.wait == 0 && s.says != "a") {
					t.Errorf("second %d: created another = %t", s.at, made)
				}
			}
			selector.says = "asked for"
			if asked, err := r.Take(t.Context(), placement); err != nil || asked.Name == latest.Name {
				t.Errorf("Take() = %s, %v, want a new snapshot", asked.Name, err)
			}
		})
	}
}
