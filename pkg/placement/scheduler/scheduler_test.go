// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func required(terms ...placementv1beta1.ClusterSelectorTerm) *placementv1beta1.PlacementPolicy {
	return &placementv1beta1.PlacementPolicy{Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms},
	}}}
}

func property(name, operator string, values ...string) placementv1beta1.ClusterSelectorTerm {
	return placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{
		MatchExpressions: []placementv1beta1.PropertySelectorRequirement{{Name: name, Operator: placementv1beta1.PropertySelectorOperator(operator), Values: values}},
	}}
}

func TestPolicyOfRefusesWhatItCannotJudge(t *testing.T) {
	cases := map[string]struct {
		policy *placementv1beta1.PlacementPolicy
		want   string // "" is fine
	}{
		"none":             {nil, ""},
		"no type":          {&placementv1beta1.PlacementPolicy{}, ""},
		"PickN":            {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN}, "PickN is not served"},
		"a bad label":      {required(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}}), "term 0"},
		"a property":       {required(property("nodes", "Ge", "3")), ""},
		"no such operator": {required(property("nodes", "Gte", "3")), `unknown operator "Gte"`},
		"no value":         {required(property("nodes", "Ge")), "0 values"},
		"not a quantity":   {required(property("version", "Ge", "v1.36")), "not a quantity"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := PolicyOf(tc.policy)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("PolicyOf() error = %v, want it to contain %q", err, tc.want)
			}
		})
	}
}

func member(change func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
	now := metav1.NewTime(noon)
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"env": "prod"}}}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: now, Conditions: []metav1.Condition{
		{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue},
	}}}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyNodeCount: {Value: "3"}}
	if change != nil {
		change(m)
	}
	return m
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestClusterOf(t *testing.T) {
	m := member(func(m *clusterv1beta1.MemberCluster) {
		m.Spec.Taints = []clusterv1beta1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
		m.Status.ResourceUsage.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	})
	want := framework.Cluster{
		Name: "m", Labels: map[string]string{"env": "prod"}, Taints: []framework.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}},
		Properties: map[string]string{"kubernetes-fleet.io/node-count": "3", "resources.kubernetes-fleet.io/allocatable-cpu": "4"},
		Agent:      framework.Agent{Reported: true, LastHeartbeat: noon, Joined: true, Health: framework.Healthy},
	}
	if diff := cmp.Diff(want, ClusterOf(m)); diff != "" {
		t.Errorf("ClusterOf() (-want +got):\n%s", diff)
	}
}

func TestDecisiveChanges(t *testing.T) {
	type change = func(*clusterv1beta1.MemberCluster)
	cases := map[string]struct {
		before, after change
		want          bool
	}{
		"a heartbeat": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(noon.Add(time.Minute))
		}, false},
		"a label": {nil, func(m *clusterv1beta1.MemberCluster) { m.Labels["env"] = "dev" }, true},
		"a property": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.Properties["x"] = clusterv1beta1.PropertyValue{Value: "1"}
		}, true},
		"a property seen again": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{Value: "3", ObservationTime: metav1.NewTime(noon)}
		}, false},
		"it leaves":       {nil, func(m *clusterv1beta1.MemberCluster) { m.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"it comes online": {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, nil, true},
		"it goes offline": {nil, func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, false},
		"a taint goes":    {func(m *clusterv1beta1.MemberCluster) { m.Spec.Taints = []clusterv1beta1.Taint{{Key: "a"}} }, nil, true},
	}
	for name, tc := range cases {
		if got := decisive(member(tc.before), member(tc.after), noon); got != tc.want {
			t.Errorf("%s: decisive() = %t, want %t", name, got, tc.want)
		}
	}
}

func TestBindingsAreNamedAfterPlacementAndMember(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
	b := desiredBinding(placement, "p-0", "m")
	if again := desiredBinding(placement, "p-1", "m"); again.GetName() != b.GetName() {
		t.Errorf("names %q and %q: a restarted scheduler would make two bindings for one member", b.GetName(), again.GetName())
	}
	reborn := placement.DeepCopy()
	reborn.UID = "2"
	if other := desiredBinding(reborn, "p-0", "m"); other.GetName() == b.GetName() {
		t.Error("a placement that was made again takes the binding of its predecessor for its own")
	}
}

func TestDroppedBindingsComeBackAsTheyWere(t *testing.T) {
	for _, state := range []placementv1beta1.BindingState{placementv1beta1.BindingScheduled, placementv1beta1.BindingBound} {
		b := desiredBinding(&placementv1beta1.ClusterResourcePlacement{}, "p-0", "m")
		b.SetAnnotations(map[string]string{"mine": "x"})
		b.GetSpec().State = state
		before := b.DeepCopyObject()
		drop(b)
		if b.GetSpec().State != placementv1beta1.BindingUnscheduled || b.GetAnnotations()[placementv1beta1.PreviousBindingStateAnnotation] != string(state) {
			t.Errorf("drop() left %+v with annotations %v", b.GetSpec(), b.GetAnnotations())
		}
		adopt(b, "p-0")
		if diff := cmp.Diff(before, b.DeepCopyObject(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after drop and adopt (-before +after):\n%s", diff)
		}
	}
}

func TestStatusNamesSelectedFirstAndNotTooMany(t *testing.T) {
	decision := &framework.Decision{Selected: []framework.Choice{{Cluster: "z"}}}
	for range maxUnselected + 5 {
		decision.Unselected = append(decision.Unselected, framework.Choice{Cluster: "a", Reason: "no"})
	}
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	setStatus(s, 4, decision)
	if n := len(s.Status.TargetClusters); n != 1+maxUnselected || !s.Status.TargetClusters[0].Selected || s.Status.ObservedCRPGeneration != 4 {
		t.Errorf("status = %+v with %d clusters", s.Status, n)
	}
	if c := s.Status.Conditions[0]; c.Reason != placementv1beta1.ReasonSchedulingPolicyUnfulfilled ||
		c.Message != "could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead" {
		t.Errorf("condition = %+v", c)
	}
}
