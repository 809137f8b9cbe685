// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/failover"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/test/support/golden"
)

// The input and output are objects, so that the implementation between them can change.
func TestDecisions_MatchGoldenFile(t *testing.T) {
	golden.Seeds(t, "decisions", 10000, func(seed uint64) string {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		members := d.members()
		placement := d.placement(members)
		return describeDecision(members, placement, d.bindings(placement, members))
	})
}

// describeDecision is the decision, in full and as in a policy snapshot's status.
func describeDecision(members []clusterv1beta1.MemberCluster, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject) string {
	policy, err := PolicyOf(placement.GetSpec().Policy, placement.GetNamespace())
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	AddTerms(policy, placement)
	fleet := &framework.Fleet{Now: noon}
	for i := range members {
		fleet.Clusters = append(fleet.Clusters, ClusterOf(&members[i]))
	}
	holdings := holdingsOf(placement, bindings, "policy-1")
	var text strings.Builder
	for _, profile := range []framework.Profile{Profile(), Telling(Profile())} {
		decision, err := profile.Decide(policy, fleet, holdings)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		write(&text, &decision)
		fmt.Fprintf(&text, "diagnosis: %s\n", profile.Diagnose(policy, fleet, &decision))
	}
	return text.String()
}

func write(text *strings.Builder, d *framework.Decision) {
	fmt.Fprintf(text, "add %q adopt %q drop %q waiting %q\n", d.Add, d.Adopt, d.Drop, d.Waiting)
	fmt.Fprintf(text, "fulfilled %t settled %t outscored %d\n", d.Fulfilled, d.Settled, d.Outscored)
	for _, r := range d.Refusals {
		fmt.Fprintf(text, "refused %s by %s: %s\n", r.Cluster, r.Rule, r.Reason)
	}
	var s placementv1beta1.ClusterSchedulingPolicySnapshot
	setStatus(&s, 1, d, "")
	fmt.Fprintf(text, "status: %s\n", s.Status.Conditions[0].Message)
	for _, target := range s.Status.TargetClusters {
		scores := "-"
		if target.ClusterScore != nil {
			scores = fmt.Sprint(*target.ClusterScore.AffinityScore, "/", *target.ClusterScore.TopologySpreadScore)
		}
		fmt.Fprintf(text, "%s selected %t %s %s\n", target.ClusterName, target.Selected, scores, target.Reason)
	}
	for _, c := range d.Unselected {
		fmt.Fprintf(text, "unselected %s: %s\n", c.Cluster, ReasonOf(c))
	}
}

// dice generates random cases; the same seed gives the same cases.
type dice struct{ *rand.Rand }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) members() []clusterv1beta1.MemberCluster {
	n := d.IntN(25)
	if d.chance(3) {
		n = 50 + d.IntN(100)
	}
	members := make([]clusterv1beta1.MemberCluster, n)
	for i := range members {
		d.member(&members[i], fmt.Sprintf("c-%03d", i))
	}
	if d.chance(50) {
		d.Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
	}
	return members
}

func (d dice) member(m *clusterv1beta1.MemberCluster, name string) {
	m.Name, m.Labels = name, map[string]string{}
	for _, label := range [][]string{{"region", "east", "west", "north", ""}, {"zone", "1", "2", "3", "4", "5", "6"}, {"env", "prod", "prod", "dev"}} {
		if d.chance(85) {
			m.Labels[label[0]] = d.one(label[1:]...)
		}
	}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
	if d.chance(80) {
		m.Status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{Value: d.one("1", "2", "3", "7", "50", "1k", "many", "")}
	}
	if d.chance(60) {
		m.Status.ResourceUsage.Available = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(d.Int64N(8)*500, resource.DecimalSI)}
	}
	if d.chance(30) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionNamespacesCollected, Status: metav1.ConditionTrue}}
		if d.chance(60) {
			m.Status.Namespaces = map[string]string{"team-a": "", "other": ""}
		}
	}
	for _, taint := range []clusterv1beta1.Taint{
		{Key: "full"}, {Key: "team", Value: "red"}, {Key: "team", Value: "blue"}, {Key: clusterv1beta1.TaintUnreachable}, {Key: clusterv1beta1.TaintUnapproved},
	} {
		if d.chance(7) {
			taint.Effect = corev1.TaintEffectNoSchedule
			m.Spec.Taints = append(m.Spec.Taints, taint)
		}
	}
	if d.chance(5) {
		m.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	}
	d.report(m)
}

// report makes most agents healthy, and the others unhealthy in different ways.
func (d dice) report(m *clusterv1beta1.MemberCluster) {
	ago := func(t time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-t)) }
	agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: ago(time.Duration(d.IntN(60)) * time.Second), Conditions: []metav1.Condition{
		{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue}}}
	switch d.IntN(30) {
	case 0:
		return
	case 1:
		agent.LastReceivedHeartbeat = ago(time.Duration(d.IntN(10)) * time.Minute)
	case 2:
		agent.Conditions = agent.Conditions[1:]
	case 3:
		agent.Conditions[0].Status = metav1.ConditionFalse
	case 4:
		agent.Conditions = agent.Conditions[:1]
	case 5:
		agent.Conditions[1].Status, agent.Conditions[1].LastTransitionTime = metav1.ConditionFalse, ago(time.Duration(d.IntN(10))*time.Minute)
	}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{agent}
}

func (d dice) placement(members []clusterv1beta1.MemberCluster) placementv1beta1.PlacementObject {
	var placement placementv1beta1.PlacementObject = &placementv1beta1.ClusterResourcePlacement{}
	if d.chance(20) {
		placement = &placementv1beta1.ResourcePlacement{}
		placement.SetNamespace("team-a")
	}
	placement.SetName("app")
	placement.SetUID(types.UID("1"))
	if d.chance(25) {
		placement.SetAnnotations(map[string]string{
			failover.AfterAnnotation: d.one("30", "120", "x"), failover.TaintsAnnotation: d.one("", "team", "full,"+clusterv1beta1.TaintUnreachable)})
	}
	if !d.chance(5) {
		placement.GetSpec().Policy = d.policy(members)
	}
	return placement
}

func (d dice) policy(members []clusterv1beta1.MemberCluster) *placementv1beta1.PlacementPolicy {
	p := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN}
	switch d.IntN(10) {
	case 0, 1:
		p.PlacementType = placementv1beta1.PlacementType(d.one("PickAll", "PickAll", "PickAll", "", "PickSome"))
	case 2:
		p.PlacementType = placementv1beta1.PickFixed
		for range d.IntN(8) {
			p.ClusterNames = append(p.ClusterNames, fmt.Sprintf("c-%03d", d.IntN(len(members)+2)))
		}
		return p
	default:
		p.NumberOfClusters = ptr.To(int32(d.IntN(len(members) + 3)))
	}
	p.Affinity = &placementv1beta1.Affinity{ClusterAffinity: d.affinity()}
	for _, key := range []string{"region", "zone", "nobody"} {
		if d.chance(25) {
			c := placementv1beta1.TopologySpreadConstraint{TopologyKey: key, WhenUnsatisfiable: placementv1beta1.UnsatisfiableConstraintAction(d.one("DoNotSchedule", "ScheduleAnyway"))}
			if d.chance(70) {
				c.MaxSkew = ptr.To(int32(1 + d.IntN(3)))
			}
			p.TopologySpreadConstraints = append(p.TopologySpreadConstraints, c)
		}
	}
	for _, toleration := range []placementv1beta1.Toleration{
		{Key: "full", Operator: corev1.TolerationOpExists}, {Key: "team", Operator: corev1.TolerationOpEqual, Value: "red"},
		{Operator: corev1.TolerationOpExists}, {Key: "team", Effect: "NoExecute", Operator: corev1.TolerationOpExists},
	} {
		if d.chance(15) {
			p.Tolerations = append(p.Tolerations, toleration)
		}
	}
	return p
}

func (d dice) affinity() *placementv1beta1.ClusterAffinity {
	affinity := &placementv1beta1.ClusterAffinity{}
	if d.chance(45) {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &placementv1beta1.ClusterSelector{}
		for range d.IntN(3) {
			required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
			required.ClusterSelectorTerms = append(required.ClusterSelectorTerms, d.term())
		}
	}
	for range d.IntN(3) {
		preferred := placementv1beta1.PreferredClusterSelector{Weight: int32(d.IntN(201) - 100)}
		if d.chance(60) {
			preferred.Preference.LabelSelector = d.labels()
		}
		if d.chance(50) {
			preferred.Preference.PropertySorter = &placementv1beta1.PropertySorter{Name: d.property(), SortOrder: placementv1beta1.PropertySortOrder(d.one("Ascending", "Descending"))}
		}
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, preferred)
	}
	return affinity
}

func (d dice) term() placementv1beta1.ClusterSelectorTerm {
	var term placementv1beta1.ClusterSelectorTerm
	if d.chance(70) {
		term.LabelSelector = d.labels()
	}
	if d.chance(40) {
		term.PropertySelector = &placementv1beta1.PropertySelector{}
		for range 1 + d.IntN(2) {
			e := placementv1beta1.PropertySelectorRequirement{Name: d.property(), Operator: placementv1beta1.PropertySelectorOperator(d.one("Gt", "Ge", "Eq", "Ne", "Lt", "Le")), Values: []string{d.one("1", "2", "3", "1500m")}}
			if d.chance(2) {
				e.Operator = "Gte"
			}
			if d.chance(2) {
				e.Values = []string{d.one("v1", "")}
			}
			term.PropertySelector.MatchExpressions = append(term.PropertySelector.MatchExpressions, e)
		}
	}
	return term
}

func (d dice) property() string {
	return d.one(string(clusterv1beta1.PropertyNodeCount), placementv1beta1.ResourcePropertyPrefix+"available-cpu", "nobody/reports")
}

func (d dice) labels() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if d.chance(60) {
		selector.MatchLabels = map[string]string{"env": d.one("prod", "dev")}
	}
	if d.chance(50) {
		e := metav1.LabelSelectorRequirement{Key: d.one("region", "zone", "env"), Operator: metav1.LabelSelectorOperator(d.one("In", "NotIn", "Exists", "DoesNotExist"))}
		if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
			e.Values = []string{"east", "1", "dev"}[:1+d.IntN(3)]
		}
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{e}
	}
	if d.chance(1) {
		selector.MatchLabels = map[string]string{"-": "x"}
	}
	return selector
}

func (d dice) bindings(placement placementv1beta1.PlacementObject, members []clusterv1beta1.MemberCluster) []placementv1beta1.BindingObject {
	var all []placementv1beta1.BindingObject
	if d.chance(40) {
		return nil
	}
	current := 10 + d.IntN(60)
	for i := range members {
		if d.chance(current) {
			all = append(all, d.binding(placement, members[i].Name))
		}
	}
	if d.chance(20) {
		all = append(all, d.binding(placement, "gone"))
	}
	return all
}

func (d dice) binding(placement placementv1beta1.PlacementObject, member string) placementv1beta1.BindingObject {
	b := &placementv1beta1.ClusterResourceBinding{}
	b.Name = bindingName(placement.GetName(), placement.GetUID(), member)
	b.Spec.TargetCluster, b.Spec.SchedulingPolicySnapshotName = member, d.one("policy-1", "policy-1", "policy-0")
	b.Spec.State = placementv1beta1.BindingState(d.one("Bound", "Bound", "Bound", "Scheduled", "Unscheduled"))
	if d.chance(8) {
		b.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		b.Name = d.one(b.Name, "of-an-earlier-one")
	}
	if d.chance(70) {
		b.Spec.ClusterDecision.ClusterScore = &placementv1beta1.ClusterScore{AffinityScore: ptr.To(int32(d.IntN(200) - 100)), TopologySpreadScore: ptr.To(int32(d.IntN(4) - 2))}
	}
	return b
}
