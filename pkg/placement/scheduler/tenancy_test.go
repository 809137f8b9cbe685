// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestSuspendRemoval_KeepsManyMembersThatAreNoLongerBound(t *testing.T) {
	const snapshot = "p-1"
	for name, tc := range map[string]struct {
		// bound is how many of ten members still are; leaving, how many of the others leave the fleet.
		bound, leaving int
		policy         string
		confirmed      bool
		keeps          int
	}{
		"keeps them": {bound: 4, policy: snapshot, keeps: 6},
		"drops few":  {bound: 6, policy: snapshot},
		"drops them after a change of the policy":          {bound: 0, policy: "p-0"},
		"drops members that leave":                         {bound: 4, leaving: 2, policy: snapshot},
		"counts no members that leave":                     {bound: 3, leaving: 2, policy: snapshot, keeps: 5},
		"drops them once somebody has confirmed a removal": {bound: 4, policy: snapshot, confirmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
			fleet, decision := &framework.Fleet{}, &framework.Decision{}
			var bindings []placementv1beta1.BindingObject
			for i := range 10 {
				member := fmt.Sprintf("m%d", i)
				leaves := i >= tc.bound && i < tc.bound+tc.leaving
				fleet.Clusters = append(fleet.Clusters, framework.Cluster{Name: member, Leaving: leaves})
				b := &placementv1beta1.ResourceBinding{}
				b.Spec.TargetCluster, b.Spec.State, b.Spec.SchedulingPolicySnapshotName = member, placementv1beta1.BindingBound, tc.policy
				bindings = append(bindings, b)
				if i < tc.bound {
					decision.Selected = append(decision.Selected, framework.Choice{Cluster: member})
				} else {
					decision.Drop = append(decision.Drop, member)
				}
			}
			if tc.confirmed {
				placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: placementv1beta1.RemovalToken(decision.Drop)}
			}
			message := suspendRemoval(placement, snapshot, fleet, bindings, decision)
			if len(decision.Selected) != tc.bound+tc.keeps || len(decision.Drop) != 10-tc.bound-tc.keeps {
				t.Errorf("selected %v, dropped %v, want %d kept", decision.Selected, decision.Drop, tc.keeps)
			}
			if got := strings.Contains(message, fmt.Sprintf("%d of 10 members", tc.keeps)); got != (tc.keeps > 0) {
				t.Errorf("message %q", message)
			}
		})
	}
}
