// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
)

func TestShortOf_ReportsIncompleteLists(t *testing.T) {
	scheduled := []metav1.Condition{{Type: ocmclusterv1beta1.ConditionSatisfied}}
	for name, tc := range map[string]struct {
		selected            int32
		conditions          []metav1.Condition
		annotations         map[string]string
		clusters, decisions int
		scheduled           bool
		short               bool
	}{
		"as many as selected":                                                              {selected: 3, conditions: scheduled, clusters: 3, decisions: 1},
		"a cluster between two decisions":                                                  {selected: 3, conditions: scheduled, clusters: 2, decisions: 2, short: true},
		"all decisions are deleted":                                                        {selected: 3, conditions: scheduled, short: true},
		"a cluster in two decisions, or not counted yet":                                   {selected: 3, conditions: scheduled, clusters: 4, decisions: 2},
		"nothing is selected":                                                              {conditions: scheduled, decisions: 1},
		"nothing is selected, and there are no decisions":                                  {conditions: scheduled},
		"a Placement that was re-created and not scheduled yet":                            {short: true},
		"a Placement that was re-created, of whose predecessor's decisions one is deleted": {clusters: 1, decisions: 1, scheduled: true, short: true},
		"decisions by hand, without a status":                                              {clusters: 1, decisions: 1},
		"decisions by hand, with the scheduler's last status": {
			selected: 3, conditions: scheduled, annotations: map[string]string{ocmclusterv1beta1.DisableAnnotation: "true"}, clusters: 1, decisions: 1,
		},
	} {
		placement := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
		placement.Status.NumberOfSelectedClusters, placement.Status.Conditions = tc.selected, tc.conditions
		decisions := make([]ocmclusterv1beta1.PlacementDecision, tc.decisions)
		for i := range decisions {
			if tc.scheduled {
				decisions[i].OwnerReferences = []metav1.OwnerReference{{Kind: "Placement", Controller: new(true)}}
			}
		}
		if short := shortOf(placement, tc.clusters, decisions); (short != "") != tc.short {
			t.Errorf("%s: %q, want short to be %v", name, short, tc.short)
		}
	}
}
