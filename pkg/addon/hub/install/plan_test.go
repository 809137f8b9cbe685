// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestPlanOf_FollowsDecisions(t *testing.T) {
	complete := func(clusters ...string) *objects.Decided { return &objects.Decided{Clusters: sets.New(clusters...)} }
	incomplete := func(clusters ...string) *objects.Decided {
		return &objects.Decided{Clusters: sets.New(clusters...), Incomplete: "one is missing"}
	}
	for name, tc := range map[string]struct {
		decided                  []*objects.Decided
		existing, leaving        []string
		create, remove, retained []string
	}{
		"no Placement removes all":             {nil, []string{"a"}, nil, nil, []string{"a"}, nil},
		"new clusters, in order":               {[]*objects.Decided{complete("b", "a")}, nil, nil, []string{"a", "b"}, nil, nil},
		"one stays and one leaves":             {[]*objects.Decided{complete("a")}, []string{"a", "b"}, nil, nil, []string{"b"}, nil},
		"two Placements select one cluster":    {[]*objects.Decided{complete("a"), complete("a", "b")}, []string{"a"}, nil, []string{"b"}, nil, nil},
		"an incomplete list removes nothing":   {[]*objects.Decided{complete("a"), incomplete("c")}, []string{"a", "b"}, nil, []string{"c"}, nil, []string{"b"}},
		"one that leaves already":              {[]*objects.Decided{complete()}, nil, []string{"b"}, nil, nil, nil},
		"one that leaves is not created again": {[]*objects.Decided{complete("b")}, nil, []string{"b"}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			existing := map[string]*addonv1alpha1.ManagedClusterAddOn{}
			for _, cluster := range tc.existing {
				existing[cluster] = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}}
			}
			for _, cluster := range tc.leaving {
				existing[cluster] = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, DeletionTimestamp: &metav1.Time{}}}
			}
			p := planOf(tc.decided, existing)
			var remove []string
			for _, addOn := range p.remove {
				remove = append(remove, addOn.Namespace)
			}
			if diff := cmp.Diff([][]string{tc.create, tc.remove, tc.retained}, [][]string{p.create, remove, p.retained}); diff != "" {
				t.Errorf("create, remove, retain (-want +got)\n%s", diff)
			}
		})
	}
}

func TestMayLose_NotWhileUnavailable(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := func(status metav1.ConditionStatus, ago time.Duration) *clusterv1.ManagedCluster {
		cluster := &clusterv1.ManagedCluster{}
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
		return cluster
	}
	deleted := since(metav1.ConditionUnknown, time.Hour)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		want    bool
	}{
		"available":        {since(metav1.ConditionTrue, time.Hour), true},
		"unreachable":      {since(metav1.ConditionUnknown, time.Hour), false},
		"unavailable":      {since(metav1.ConditionFalse, time.Hour), false},
		"just returned":    {since(metav1.ConditionTrue, returnDelay-time.Second), false},
		"never reported":   {&clusterv1.ManagedCluster{}, true},
		"deleted, no more": {deleted, true},
	} {
		if got := mayLose(tc.cluster, now); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDesiredAddOn_HasOwnerAndAnnotations(t *testing.T) {
	of := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "dns", UID: "u"}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{"addon.open-cluster-management.io/x": "y", "people": "z"}}}
	addOn := desiredAddOn(of, cluster)
	owner := metav1.GetControllerOf(addOn)
	if addOn.Namespace != "edge" || addOn.Name != "dns" || owner == nil || owner.UID != "u" || owner.APIVersion != "addon.open-cluster-management.io/v1alpha1" {
		t.Errorf("got %+v", addOn)
	}
	if addOn.Annotations["addon.open-cluster-management.io/x"] != "y" || addOn.Annotations["people"] != "" {
		t.Errorf("annotations are %v", addOn.Annotations)
	}
}
