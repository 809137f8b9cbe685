// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/family"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// nothing selects nothing, and no run needs anything.
type nothing struct{}

func (nothing) Select(context.Context, types.NamespacedName, []placementv1beta1.ResourceSelectorTerm, *selection.Bound) (selection.Selected, error) {
	return selection.Selected{}, nil
}
func (nothing) Forget(types.NamespacedName) {}

func (nothing) Needed(context.Context, types.NamespacedName) ([]string, error) { return nil, nil }

// A placement that was made anew at once took the snapshot of the one before it, which
// the cache still had, for its own; its bindings then named a snapshot that was gone.
func TestAPlacementDoesNotTakeTheSnapshotOfAnEarlierOneOfItsName(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "now"}}
	before := desiredResourceSnapshots(now, split(nil, sizeLimit), resourceHash(nil), 0, Envelopes{})[0]
	before.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ClusterResourcePlacement", Name: "p", UID: "before", Controller: new(true)}})
	byPlacement := func(o client.Object) []string {
		return []string{o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(now, before).
		WithIndex(&placementv1beta1.ClusterResourceSnapshot{}, "placement", byPlacement).
		WithIndex(&placementv1beta1.ClusterResourceBinding{}, "placement", byPlacement).Build()
	r := &Reconciler{Client: hub, Live: hub, Selector: nothing{}, Users: nothing{}}
	first, err := r.Take(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if !metav1.IsControlledBy(first, now) || !family.IsLatest(first) {
		t.Errorf("it took %s, owned by %v", first.Name, first.OwnerReferences)
	}
	again, err := r.Take(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	if again.Name != first.Name {
		t.Errorf("nothing changed, and it took %s after %s", again.Name, first.Name)
	}
}
