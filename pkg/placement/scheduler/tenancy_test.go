// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/test/support/build"
)

// tenant is a placement on ten members, by a policy snapshot on a hub.
type tenant struct {
	*Reconciler
	placement *placementv1beta1.ResourcePlacement
	policy    *placementv1beta1.SchedulingPolicySnapshot
	clock     *clocktesting.FakeClock
	fleet     *framework.Fleet
	bindings  []*placementv1beta1.ResourceBinding
}

func newTenant(t *testing.T) *tenant {
	n := &tenant{
		placement: &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}},
		policy:    &placementv1beta1.SchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web-1"}},
		clock:     clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), fleet: &framework.Fleet{},
	}
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(placementv1beta1.AddToScheme)).WithStatusSubresource(n.placement).WithObjects(n.placement, n.policy).Build()
	n.Reconciler = &Reconciler{Client: hub, Clock: n.clock, Recorder: events.NewFakeRecorder(10)}
	for i := range 10 {
		member := fmt.Sprintf("m%d", i)
		n.fleet.Clusters = append(n.fleet.Clusters, framework.Cluster{Name: member})
		b := &placementv1beta1.ResourceBinding{}
		b.Spec.TargetCluster, b.Spec.State, b.Spec.SchedulingPolicySnapshotName = member, placementv1beta1.BindingBound, n.policy.Name
		n.bindings = append(n.bindings, b)
	}
	for _, object := range []client.Object{n.placement, n.policy} {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// unbind decides that only the first members are bound, and returns the kept ones and the condition.
func (n *tenant) unbind(t *testing.T, bound int) (kept int, c *metav1.Condition) {
	t.Helper()
	var bindings []placementv1beta1.BindingObject
	decision := &framework.Decision{}
	for i, b := range n.bindings {
		bindings = append(bindings, b)
		switch {
		case i < bound:
			decision.Selected = append(decision.Selected, framework.Choice{Cluster: b.Spec.TargetCluster})
		case b.Spec.State != placementv1beta1.BindingUnscheduled:
			decision.Drop = append(decision.Drop, b.Spec.TargetCluster)
		}
	}
	c, err := n.suspendRemoval(t.Context(), n.placement, n.policy, n.fleet, bindings, decision)
	if err == nil {
		err = n.reportSuspension(t.Context(), n.placement, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range n.bindings {
		b.Spec.State = placementv1beta1.BindingBound
		if i >= len(decision.Selected) {
			b.Spec.State = placementv1beta1.BindingUnscheduled
		}
	}
	reported := meta.FindStatusCondition(n.placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended)
	if (reported != nil) != (c != nil) {
		t.Errorf("reported condition %v, want %v", reported, c)
	}
	return len(decision.Selected) - bound, c
}

func TestSuspendRemoval_KeepsManyMembersThatAreNoLongerBound(t *testing.T) {
	for name, tc := range map[string]struct {
		// bound is how many of ten members still are; leaving, how many of the others leave the fleet.
		bound, leaving int
		policy         string
		confirmed      []string
		keeps          int
	}{
		"keeps them": {bound: 4, keeps: 6},
		"keeps all once the setting limits a namespace without bindings": {keeps: 10},
		"drops few": {bound: 6},
		"drops them after a change of the policy":          {policy: "web-0"},
		"drops members that leave":                         {bound: 4, leaving: 2},
		"counts no members that leave":                     {bound: 3, leaving: 2, keeps: 5},
		"drops them once somebody has confirmed a removal": {bound: 5, confirmed: []string{"m5", "m6", "m7", "m8", "m9"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTenant(t)
			for i, b := range n.bindings {
				if tc.policy != "" {
					b.Spec.SchedulingPolicySnapshotName = tc.policy
				}
				n.fleet.Clusters[i].Leaving = i >= tc.bound && i < tc.bound+tc.leaving
			}
			if tc.confirmed != nil {
				n.placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: placementv1beta1.RemovalToken(tc.confirmed)}
			}
			kept, c := n.unbind(t, tc.bound)
			if kept != tc.keeps || (c != nil) != (tc.keeps > 0) {
				t.Fatalf("kept %d members with condition %v, want %d", kept, c, tc.keeps)
			}
			if c != nil && (!strings.Contains(c.Message, fmt.Sprintf("%d of 10 members", tc.keeps)) || len(n.Recorder.(*events.FakeRecorder).Events) != 1) {
				t.Errorf("message %q, want the number of members, and one event", c.Message)
			}
		})
	}
}

// A script that removes one label after the other makes many small removals.
func TestSuspendRemoval_CountsRecentOnes(t *testing.T) {
	n := newTenant(t)
	for bound := 9; bound >= 6; bound-- {
		if kept, c := n.unbind(t, bound); kept != 0 || c != nil {
			t.Fatalf("kept %d members with condition %v, want removal %d carried out", kept, c, 10-bound)
		}
		n.clock.Step(time.Minute)
	}
	kept, c := n.unbind(t, 5)
	if kept != 1 || c == nil || !strings.Contains(c.Message, "1 of 6 members are no longer bound to the namespace after 4 others within 10m") {
		t.Fatalf("kept %d members with condition %v, want the fifth removal suspended", kept, c)
	}
	n.clock.Step(placementv1beta1.RemovalWindow)
	if kept, _ := n.unbind(t, 5); kept != 1 {
		t.Fatal("the suspended removal was carried out after a while")
	}

	n.placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: placementv1beta1.RemovalToken([]string{"m5"})}
	if kept, c := n.unbind(t, 5); kept != 0 || c != nil {
		t.Errorf("kept %d members with condition %v after the confirmation", kept, c)
	}
	if kept, _ := n.unbind(t, 4); kept != 0 {
		t.Error("members that a user confirmed count together with the next one")
	}
}

func TestSuspendRemoval_ForgetsMembersThatAreBoundAgain(t *testing.T) {
	n := newTenant(t)
	for range 3 { // The same four members count once.
		if kept, _ := n.unbind(t, 6); kept != 0 {
			t.Fatal("the same members count more than once")
		}
		n.unbind(t, 10)
	}
	slices.Reverse(n.bindings)
	if kept, _ := n.unbind(t, 9); kept != 0 {
		t.Error("members that are bound again count together with another one")
	}
}
