// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
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

func TestPolicyOf_RejectsInvalidPolicies(t *testing.T) {
	cases := map[string]struct {
		policy *placementv1beta1.PlacementPolicy
		want   string // "" means valid.
	}{
		"none":             {nil, ""},
		"no type":          {&placementv1beta1.PlacementPolicy{}, ""},
		"no such type":     {&placementv1beta1.PlacementPolicy{PlacementType: "PickSome"}, "PickSome"},
		"PickN":            {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN}, "numberOfClusters"},
		"a bad label":      {required(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "x"}}}), "term 0"},
		"a property":       {required(property("nodes", "Ge", "3")), ""},
		"no such operator": {required(property("nodes", "Gte", "3")), `unknown operator "Gte"`},
		"no value":         {required(property("nodes", "Ge")), "0 values"},
		"not a quantity":   {required(property("version", "Ge", "v1.36")), "not a quantity"},
		"a billion digits": {required(property("nodes", "Ge", "1e-99999999")), "not a quantity"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := PolicyOf(tc.policy, "")
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

func TestPolicyOf_PickN(t *testing.T) {
	policy := required(property("nodes", "Ge", "3"))
	policy.PlacementType, policy.NumberOfClusters = placementv1beta1.PickN, new(int32(3))
	policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{
		{TopologyKey: "region"}, {TopologyKey: "ring", MaxSkew: new(int32(2)), WhenUnsatisfiable: placementv1beta1.ScheduleAnyway},
	}
	policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []placementv1beta1.PreferredClusterSelector{
		{Weight: 20, Preference: placementv1beta1.ClusterSelectorTerm{PropertySorter: &placementv1beta1.PropertySorter{Name: "cost", SortOrder: placementv1beta1.Ascending}}},
	}
	want := &framework.Policy{
		Kind: framework.PickN, Count: 3, Namespace: "shop", Tolerations: []framework.Toleration{},
		Required:  []framework.Term{{Properties: []framework.PropertyRequirement{{Name: "nodes", Operator: framework.GreaterOrEqual, Value: resource.MustParse("3")}}}},
		Preferred: []framework.Preference{{Weight: 20, SortBy: "cost", Ascending: true}},
		Spread:    []framework.SpreadConstraint{{Label: "region", MaxSkew: 1}, {Label: "ring", MaxSkew: 2, Soft: true}},
	}
	got, err := PolicyOf(policy, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PolicyOf() (-want +got):\n%s", diff)
	}
}

func TestPolicyOf_ReadsNumberFromAnnotation(t *testing.T) {
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	s.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(3))}
	for text, want := range map[string]int{"5": 5, "0": 0, "-1": -1, "many": -1} {
		if want == 0 {
			s.Spec.Policy.NumberOfClusters = nil // Like snapshots of another product.
		}
		s.Annotations = map[string]string{placementv1beta1.NumberOfClustersAnnotation: text}
		policy, err := policyOf(s)
		if want < 0 {
			if refusal.Of(err) == nil {
				t.Errorf("annotation %q: error %v, want a refusal of the policy", text, err)
			}
			continue
		}
		if err != nil || policy.Count != want {
			t.Errorf("annotation %q: %+v, error %v, want %d clusters", text, policy, err, want)
		}
	}
}

func TestChangeOf(t *testing.T) {
	type edit = func(*clusterv1beta1.MemberCluster)
	taint := func(m *clusterv1beta1.MemberCluster) { m.Spec.Taints = []clusterv1beta1.Taint{{Key: "a"}} }
	namespaces := func(names ...string) edit {
		return func(m *clusterv1beta1.MemberCluster) {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionNamespacesCollected, Status: metav1.ConditionTrue}}
			m.Status.Namespaces = map[string]string{}
			for _, name := range names {
				m.Status.Namespaces[name] = "work-" + m.Name
			}
		}
	}
	cases := map[string]struct {
		before, after edit
		want          change
	}{
		"heartbeat": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(noon.Add(time.Minute))
		}, irrelevant},
		"a label": {nil, func(m *clusterv1beta1.MemberCluster) { m.Labels["env"] = "dev" }, decisive},
		"a property": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.Properties["x"] = clusterv1beta1.PropertyValue{Value: "1"}
		}, measured},
		"property observed again": {nil, func(m *clusterv1beta1.MemberCluster) {
			m.Status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{Value: "3", ObservationTime: metav1.NewTime(noon)}
		}, irrelevant},
		"member leaves":              {nil, func(m *clusterv1beta1.MemberCluster) { m.DeletionTimestamp = &metav1.Time{Time: noon} }, decisive},
		"member goes online":         {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, nil, decisive},
		"member goes offline":        {nil, func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, irrelevant},
		"removed taint":              {taint, nil, decisive},
		"added taint":                {nil, taint, irrelevant},
		"new namespace":              {namespaces("shop"), namespaces("shop", "bank"), decisive},
		"same namespaces":            {namespaces("shop"), namespaces("shop"), irrelevant},
		"other namespace":            {namespaces("shop"), namespaces("bank"), decisive},
		"first report of namespaces": {nil, namespaces("shop"), decisive},
	}
	for name, tc := range cases {
		if got := changeOf(member(tc.before), member(tc.after), noon); got != tc.want {
			t.Errorf("%s: changeOf() = %d, want %d", name, got, tc.want)
		}
	}
}

func TestSilence(t *testing.T) {
	joined := func(status metav1.ConditionStatus, after time.Duration) *clusterv1beta1.MemberCluster {
		return member(func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(noon.Add(after))
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: status}}
		})
	}
	cases := map[string]struct {
		before, after *clusterv1beta1.MemberCluster
		want          time.Duration
	}{
		"regular heartbeat":          {joined(metav1.ConditionTrue, 0), joined(metav1.ConditionTrue, 5*time.Minute), 0},
		"member loses its heartbeat": {joined(metav1.ConditionTrue, 0), joined(metav1.ConditionUnknown, 2*time.Minute), 0},
		"member recovers":            {joined(metav1.ConditionUnknown, 0), joined(metav1.ConditionTrue, time.Hour), time.Hour},
		"no condition Joined":        {member(nil), joined(metav1.ConditionTrue, time.Minute), time.Minute},
		"member that never reported": {member(func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }), member(nil), 0},
	}
	for name, tc := range cases {
		if got := silence(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: silence() = %s, want %s", name, got, tc.want)
		}
	}
}

func TestMeasures(t *testing.T) {
	sorter := &placementv1beta1.PlacementPolicy{Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{
			{Preference: placementv1beta1.ClusterSelectorTerm{PropertySorter: &placementv1beta1.PropertySorter{Name: "cost"}}},
		},
	}}}
	cases := map[string]struct {
		policy *placementv1beta1.PlacementPolicy
		want   bool
	}{
		"none":            {nil, false},
		"labels":          {required(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{}}), false},
		"a property":      {required(property("nodes", "Ge", "3")), true},
		"a sort property": {sorter, true},
	}
	for name, tc := range cases {
		if got := measures(tc.policy); got != tc.want {
			t.Errorf("%s: measures() = %t, want %t", name, got, tc.want)
		}
	}
}

// fleet is a client.Reader of members.
type fleet struct {
	client.Reader
	members []clusterv1beta1.MemberCluster
}

func (f *fleet) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*clusterv1beta1.MemberClusterList).Items = f.members
	return nil
}

func TestMemberCache_TranslatesOnlyChangedMembers(t *testing.T) {
	reader := &fleet{members: []clusterv1beta1.MemberCluster{*member(nil), *member(nil)}}
	reader.members[1].Name = "n"
	var r memberCache
	look := func(want ...string) {
		t.Helper()
		clusters, err := r.clusters(t.Context(), reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range clusters {
			got = append(got, c.Name+" "+c.Labels["env"])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("clusters() (-want +got):\n%s", diff)
		}
	}
	look("m prod", "n prod")
	reader.members[1].Labels = map[string]string{"env": "dev"}
	look("m prod", "n prod") // The version did not change.
	reader.members[1].ResourceVersion = "2"
	look("m prod", "n dev")
	reader.members = reader.members[1:]
	look("n dev")
	if len(r.known) != 1 {
		t.Errorf("%d members are stored after one left", len(r.known))
	}
}

func TestBindingName_FollowsFromPlacementAndMember(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"}}
	m := framework.Choice{Cluster: "m"}
	b := desiredBinding(placement, "p-0", m)
	if again := desiredBinding(placement, "p-1", m); again.GetName() != b.GetName() {
		t.Errorf("names %q and %q: a restarted scheduler would create two bindings for one member", b.GetName(), again.GetName())
	}
	reborn := placement.DeepCopy()
	reborn.UID = "2"
	if other := desiredBinding(reborn, "p-0", m); other.GetName() == b.GetName() {
		t.Error("a re-created placement adopts its predecessor's binding")
	}
}

func TestAdopt_RestoresDroppedBindings(t *testing.T) {
	for _, state := range []placementv1beta1.BindingState{placementv1beta1.BindingScheduled, placementv1beta1.BindingBound} {
		m := framework.Choice{Cluster: "m", Score: &framework.Score{Affinity: 5}}
		b := desiredBinding(&placementv1beta1.ClusterResourcePlacement{}, "p-0", m)
		b.SetAnnotations(map[string]string{"mine": "x"})
		b.GetSpec().State = state
		before := b.DeepCopyObject()
		drop(b)
		if b.GetSpec().State != placementv1beta1.BindingUnscheduled || b.GetAnnotations()[placementv1beta1.PreviousBindingStateAnnotation] != string(state) {
			t.Errorf("drop() left %+v with annotations %v", b.GetSpec(), b.GetAnnotations())
		}
		adopt(b, "p-0", m)
		if diff := cmp.Diff(before, b.DeepCopyObject(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after drop and adopt (-before +after):\n%s", diff)
		}
	}
}

func TestSetStatus_SelectedFirstWithinLimit(t *testing.T) {
	decision := &framework.Decision{Selected: []framework.Choice{{Cluster: "z"}}}
	for range maxUnselected + 5 {
		decision.Unselected = append(decision.Unselected, framework.Choice{Cluster: "a", Reason: "no", Score: &framework.Score{Affinity: 3, Spread: -1}})
	}
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	setStatus(s, 4, decision, ": 1 of 26 clusters fit")
	if n := len(s.Status.TargetClusters); n != 1+maxUnselected || !s.Status.TargetClusters[0].Selected || s.Status.ObservedCRPGeneration != 4 {
		t.Errorf("status = %+v with %d clusters", s.Status, n)
	}
	if score := s.Status.TargetClusters[1].ClusterScore; *score.AffinityScore != 3 || *score.TopologySpreadScore != -1 {
		t.Errorf("score = %+v", score)
	}
	if c := s.Status.Conditions[0]; c.Reason != placementv1beta1.ReasonSchedulingPolicyUnfulfilled ||
		c.Message != "could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead: 1 of 26 clusters fit" {
		t.Errorf("condition = %+v", c)
	}
}

func TestSetStatus_KeepsEntriesOfOthersIfUnchanged(t *testing.T) {
	z := framework.Choice{Cluster: "z", Score: &framework.Score{}}
	first := &framework.Decision{Selected: []framework.Choice{z}, Unselected: []framework.Choice{{Cluster: "a", Reason: "no"}}, Fulfilled: true}
	written := decisions(nil, first)
	again := decisions(written, &framework.Decision{Selected: first.Selected, Fulfilled: true, Settled: true})
	if diff := cmp.Diff(written, again); diff != "" {
		t.Errorf("second call changes the status (-first +second):\n%s", diff)
	}
	fewer := decisions(written, &framework.Decision{Fulfilled: true, Settled: true})
	if len(fewer) != 0 {
		t.Errorf("after scaling to none: %+v", fewer)
	}
}

func TestSetStatus_StaysWithinSchema(t *testing.T) {
	decision := &framework.Decision{Fulfilled: true, Unselected: []framework.Choice{{Cluster: "x"}}}
	for range objects.MaxDecisions + 1 {
		decision.Selected = append(decision.Selected, framework.Choice{Cluster: "a"})
	}
	if n := len(decisions(nil, decision)); n != objects.MaxDecisions {
		t.Errorf("%d decisions, the schema allows %d", n, objects.MaxDecisions)
	}
}
