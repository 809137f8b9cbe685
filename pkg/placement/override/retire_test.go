// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// runs are update runs that need these snapshots.
type runs []types.NamespacedName

func (r runs) NeededOverrides(context.Context) ([]types.NamespacedName, error) { return r, nil }

func TestRetire_KeepsUsedSnapshots(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "shop-m"}}
	binding.Spec.ClusterResourceOverrideSnapshots = []string{"o-0"}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(binding).Build()
	r := NewReconcilers(hub, runs{{Name: "o-1"}})[0]
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "o"}}
	look := func() reconcile.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	expect := func(what string, want ...string) {
		t.Helper()
		var list placementv1beta1.ClusterResourceOverrideSnapshotList
		if err := hub.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, s.Name+" "+s.Labels[placementv1beta1.IsLatestSnapshotLabel])
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: snapshots (-want +got):\n%s", what, diff)
		}
	}

	o := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
	if err := hub.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 13 {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		o.Spec.Placement = &placementv1beta1.PlacementRef{Name: fmt.Sprint(i)}
		if err := hub.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		look()
		if i < 2 || 2 < i && i < 12 {
			want = append(want, fmt.Sprintf("o-%d false", i))
		}
	}
	expect("edited twelve times", append(want, "o-12 true")...)

	if err := hub.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := look().RequeueAfter; got != settle {
		t.Errorf("RequeueAfter = %s after the latest snapshot was withdrawn, want %s", got, settle)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Errorf("the override does not wait for its unused snapshots: %v", err)
	}
	if got := look().RequeueAfter; got != recheck {
		t.Errorf("RequeueAfter = %s with used snapshots, want %s", got, recheck)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(o), o); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the override still exists: %v", err)
	}
	expect("the override is deleted", "o-0 false", "o-1 false")

	if err := hub.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	r.Users = runs{}
	if result := look(); result.RequeueAfter != 0 {
		t.Errorf("RequeueAfter = %s without remaining snapshots", result.RequeueAfter)
	}
	expect("nobody uses them")
}
