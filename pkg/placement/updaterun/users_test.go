// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestUnfinishedRunsNeedTheirSnapshots(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	run := func(name, placement, requested, used string, succeeded metav1.ConditionStatus) *placementv1beta1.ClusterStagedUpdateRun {
		r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
		r.Spec.PlacementName, r.Spec.ResourceSnapshotIndex, r.Status.ResourceSnapshotIndexUsed = placement, requested, used
		if succeeded != "" {
			r.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionUpdateRunSucceeded, Status: succeeded}}
		}
		return r
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		run("done", "p", "0", "0", metav1.ConditionTrue), run("failed", "p", "1", "1", metav1.ConditionFalse),
		run("going", "p", "", "2", ""), run("begun", "p", "3", "", ""), run("open", "p", "", "", ""), run("odd", "p", "x", "", ""),
		run("other", "q", "4", "", ""),
	).WithIndex(&placementv1beta1.ClusterStagedUpdateRun{}, runsByPlacement, func(o client.Object) []string {
		return []string{o.(placementv1beta1.UpdateRunObject).GetSpec().PlacementName}
	}).Build()
	got, err := Users{Client: hub}.Needed(t.Context(), types.NamespacedName{Name: "p"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"p-2-snapshot", "p-3-snapshot"}, got); diff != "" {
		t.Errorf("Needed() (-want +got):\n%s", diff)
	}
}
