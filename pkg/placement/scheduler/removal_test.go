// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"strings"
	"testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// A label that was misspelled in a policy removed the workload from every member.
func TestSuspendUnfit_KeepsManyMembersOfAPolicyThatFitsNone(t *testing.T) {
	const token = "250ab38cff"
	for name, tc := range map[string]struct {
		members   int
		leaving   int
		selected  bool
		policy    framework.Policy
		confirmed string
		kept      int
	}{
		"many members":                {members: 5, policy: framework.Policy{Kind: framework.PickAll}, kept: 5},
		"many members, of a number":   {members: 5, policy: framework.Policy{Kind: framework.PickN, Count: 5}, kept: 5},
		"the author asks for none":    {members: 5, policy: framework.Policy{Kind: framework.PickN}},
		"a removal that is confirmed": {members: 5, policy: framework.Policy{Kind: framework.PickAll}, confirmed: "x," + token},
		"another confirmation":        {members: 5, policy: framework.Policy{Kind: framework.PickAll}, confirmed: "x", kept: 5},
		"few members":                 {members: 4, policy: framework.Policy{Kind: framework.PickAll}},
		"members that leave":          {members: 5, leaving: 1, policy: framework.Policy{Kind: framework.PickAll}},
		"one that fits":               {members: 5, selected: true, policy: framework.Policy{Kind: framework.PickAll}},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{}
			placement.Name, placement.Annotations = "web", map[string]string{placementv1beta1.ConfirmRemovalAnnotation: tc.confirmed}
			fleet, decision := &framework.Fleet{}, &framework.Decision{}
			var bindings []placementv1beta1.BindingObject
			for i := range tc.members {
				member := fmt.Sprintf("m%d", i)
				fleet.Clusters = append(fleet.Clusters, framework.Cluster{Name: member, Leaving: i < tc.leaving})
				b := &placementv1beta1.ClusterResourceBinding{}
				b.Spec.TargetCluster, b.Spec.State = member, placementv1beta1.BindingBound
				bindings, decision.Drop = append(bindings, b), append(decision.Drop, member)
			}
			if tc.selected {
				decision.Selected = []framework.Choice{{Cluster: "other"}}
			}
			c := suspendUnfit(placement, &tc.policy, fleet, bindings, decision)
			if kept := tc.members - len(decision.Drop); kept != tc.kept || (c != nil) != (tc.kept > 0) {
				t.Fatalf("kept %d members, want %d; condition %v", kept, tc.kept, c)
			}
			if c != nil && !strings.Contains(c.Message, "5 of 5 members would lose the placement: m0, m1, m2, m3, m4.") {
				t.Errorf("message %q", c.Message)
			}
		})
	}
}
