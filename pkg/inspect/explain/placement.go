// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	placementproblems "fleetgate.io/fleetgate/pkg/placement/problems"
)

// Facts is what was read about a placement.
type Facts struct {
	// Placement is the placement in question, Name is its name as users write it.
	Placement placementv1beta1.PlacementObject
	Name      string
	// Bindings are those of the placement.
	Bindings []placementv1beta1.BindingObject
	// Members are those of the fleet. If the placement is bound to Member, that one is enough.
	Members []clusterv1beta1.MemberCluster
	// Member limits the question to one member; empty means all.
	Member string
	// Refusals hold, by member, the scheduler plugin that rejects it now and its message. They
	// are set for one member that is not selected, and if the policy lacks members.
	Refusals map[string]Refusal
	// Removals are what Works of the placement say of objects that are not gone from members.
	Removals []Removal
	// Evictions are those of the placement.
	Evictions []placementv1beta1.ClusterResourcePlacementEviction
}

// Refusal is the rejection of a member by a scheduler plugin.
type Refusal struct{ Rule, Reason string }

// Removal is the message of a Work about objects that are not deleted yet.
type Removal struct{ Member, Message string }

// Placement returns the problems of a placement, or of a placement on one member. The first is
// the answer; none means that it is healthy.
func Placement(f *Facts) []Problem {
	problems := f.problems()
	for i := range problems {
		f.remedied(&problems[i])
	}
	return problems
}

// problems is Placement without the remedies that depend on the message: they are derived after a
// thousand members with the same message were merged into one answer.
func (f *Facts) problems() []Problem {
	if whole := f.whole(); len(whole) > 0 {
		for i := range whole {
			whole[i].Member = f.Member
		}
		return whole
	}
	if f.Member != "" {
		return f.onMember(f.Member)
	}
	all := append(merged(f.everywhere()), f.notSelected()...)
	if unmatched := placementproblems.UnmatchedNames(f.Placement, f.Placement.GetStatus()); unmatched != "" {
		all = append(all, Problem{Object: f.object(), Reason: unmatched, Remedy: "create the object, or correct the selector"})
	}
	return all
}

func (f *Facts) object() string { return "placement " + f.Name }

// whole returns the problem that affects all members.
func (f *Facts) whole() []Problem {
	if placementv1beta1.Paused(f.Placement) {
		return []Problem{{Object: f.object(), Reason: "the placement is paused; it does not change on any member"}}
	}
	status := f.Placement.GetStatus()
	scheduled := meta.FindStatusCondition(status.Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
	switch {
	case f.Placement.GetDeletionTimestamp() != nil && len(f.Removals) > 0:
		var all []Problem
		for _, removal := range f.Removals {
			all = append(all, f.removing(removal))
		}
		return all
	case f.Placement.GetDeletionTimestamp() != nil:
		return []Problem{{Object: f.object(), Reason: fmt.Sprintf("the placement is being deleted; %d members still have to remove its resources", len(f.Bindings)),
			Remedy: "wait; if a member no longer exists, remove it from the fleet: kubectl fleetgate leave MEMBER"}}
	case scheduled == nil:
		return []Problem{{Object: f.object(), Reason: "no gateway has processed the placement", Remedy: "check that a gateway is the leader: kubectl fleetgate diagnose"}}
	case scheduled.Status == metav1.ConditionFalse && scheduled.Reason == placementv1beta1.ReasonInvalidResourceSelectors:
		return []Problem{{Object: f.object(), Reason: scheduled.Message, code: scheduled.Reason}}
	}
	for _, kind := range []string{placementv1beta1.ConditionResourcesWithheld, placementv1beta1.ConditionResourcesUnreadable, placementv1beta1.ConditionResourcesTooLarge} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return []Problem{{Object: f.object(), Reason: c.Message, Remedy: remedyOfRights[currentReason(c.Reason)]}}
		}
	}
	if status.SelectsNothing() {
		return []Problem{{Object: f.object(), Reason: "spec.resourceSelectors match nothing on the hub, so nothing is placed"}}
	}
	return nil
}

// removing is the answer for a member that still has objects. The agent's message ends with the
// command that helps.
func (f *Facts) removing(of Removal) Problem {
	// Agents of the previous version write other words between these two.
	reason, hint, _ := strings.Cut(of.Message, ". If the controller that removes them ")
	_, command, _ := strings.Cut(hint, "run on the member: ")
	a := Problem{Object: f.object(), Member: of.Member, Reason: "being removed from " + of.Member + ": " + reason}
	if command != "" {
		a.Remedy = "if the controller that removes these finalizers no longer exists, run on " + of.Member + ": " + command
	}
	return a
}

// remedyOfRights maps reasons of conditions about resources that are selected and not placed to remedies.
var remedyOfRights = map[string]string{
	placementv1beta1.ReasonAuthorForbidden:  "have a user who can read these kinds update the placement, with the command in the message",
	placementv1beta1.ReasonKindUnavailable:  "restore the conversion webhook or the API server behind the kind, or delete its CustomResourceDefinition or APIService",
	placementv1beta1.ReasonObjectTooLarge:   "split the objects",
	placementv1beta1.ReasonGatewayForbidden: "label a ClusterRole that grants access to these kinds with " + placementv1beta1.PlaceableLabel + "=true",
}

// currentReason translates a reason that a gateway or agent of the previous version wrote.
// Remove after the next release.
func currentReason(reason string) string {
	switch reason {
	case placementv1beta1.PreviousAuthorForbidden:
		return placementv1beta1.ReasonAuthorForbidden
	case placementv1beta1.PreviousGatewayForbidden:
		return placementv1beta1.ReasonGatewayForbidden
	case placementv1beta1.PreviousCorrectionsReverted:
		return placementv1beta1.ReasonCorrectionsReverted
	case placementv1beta1.PreviousFieldsNotApplied:
		return placementv1beta1.ReasonFieldsNotApplied
	}
	return reason
}

// everywhere returns the problems of all members that have a problem, by member name.
func (f *Facts) everywhere() []Problem {
	var all []Problem
	for _, b := range f.sortedBindings() {
		if found := f.ofBinding(b); len(found) > 0 {
			all = append(all, found[0])
		}
	}
	return all
}

func (f *Facts) sortedBindings() []placementv1beta1.BindingObject {
	return slices.SortedFunc(slices.Values(f.Bindings), func(a, b placementv1beta1.BindingObject) int {
		return cmp.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
}

// merged combines equal problems of several members into one with their number.
func merged(all []Problem) []Problem {
	var out []Problem
	at := map[string]int{}
	for _, a := range all {
		key := a.Object + "\x00" + strings.ReplaceAll(a.Reason, strconv.Quote(a.Member), "")
		if i, seen := at[key]; seen {
			out[i].Others++
			continue
		}
		at[key] = len(out)
		out = append(out, a)
	}
	return out
}

// notSelected is the answer for a policy that selects fewer members than it asks for.
func (f *Facts) notSelected() []Problem {
	if f.Scheduled() {
		return nil
	}
	scheduled := meta.FindStatusCondition(f.Placement.GetStatus().Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
	a := Problem{Object: f.object(), Reason: scheduled.Message, Remedy: "show why each member is rejected: kubectl fleetgate simulate " + f.Name}
	var first string
	for _, name := range slices.Sorted(maps.Keys(f.Refusals)) {
		r := f.Refusals[name]
		a.Details = append(a.Details, fmt.Sprintf("member %s: %s", name, untrusted.Line(r.Reason)))
		first = cmp.Or(first, name)
	}
	if first != "" && len(f.Refusals) == 1 {
		a.Member, a.Remedy = first, remedyOfRule(f.Refusals[first], first, f.Name)
	}
	return []Problem{a}
}

// Bound is true if the placement has a binding for Member.
func (f *Facts) Bound() bool { return f.bindingFor(f.Member) >= 0 }

func (f *Facts) bindingFor(member string) int {
	return slices.IndexFunc(f.Bindings, func(b placementv1beta1.BindingObject) bool { return b.GetSpec().TargetCluster == member })
}

func (f *Facts) onMember(member string) []Problem {
	if at := f.bindingFor(member); at >= 0 {
		if found := f.ofBinding(f.Bindings[at]); len(found) > 0 {
			return found
		}
		return f.blocked(member)
	}
	a := Problem{Object: f.object(), Member: member, Reason: "the member is not selected"}
	if m := f.member(member); m != nil && !m.IsApproved() {
		a.Reason, a.Remedy = "the member is not selected: it is waiting for approval", "kubectl fleetgate approve "+member
		return []Problem{a}
	}
	if refused, ok := f.Refusals[member]; ok {
		a.Reason += ": " + refused.Reason
		a.Remedy = remedyOfRule(refused, member, f.Name)
		return []Problem{a}
	}
	return []Problem{f.unselected(a)}
}

// unselected is the answer for a member that no scheduler plugin rejects: the policy has all the
// members that it asks for, so the scheduler did not consider it.
func (f *Facts) unselected(a Problem) Problem {
	a.Remedy = "show the scheduling decision: kubectl fleetgate simulate " + f.Name
	policy := f.Placement.GetSpec().Policy
	m := f.member(a.Member)
	switch {
	case policy != nil && policy.PlacementType == placementv1beta1.PickFixed:
		a.Reason, a.Remedy = "the member is not selected: spec.policy.clusterNames does not contain it", "add the member to spec.policy.clusterNames"
	case m != nil && cordoned(m):
		a.Reason, a.Remedy = "the member is not selected, and it is cordoned", "kubectl fleetgate uncordon "+a.Member
	case policy != nil && policy.PlacementType == placementv1beta1.PickN:
		a.Reason = fmt.Sprintf("the member is not selected: the policy requires %d members and selected %d", ptr.Deref(policy.NumberOfClusters, 0), len(f.Bindings))
		a.Remedy = "raise numberOfClusters, or add a preference for the member's labels; to show the decision, run kubectl fleetgate simulate " + f.Name
	}
	return a
}

// remedyOfRule is the remedy for a rejection by a scheduler plugin.
func remedyOfRule(refused Refusal, member, placement string) string {
	switch refused.Rule {
	case "TaintToleration":
		if strings.Contains(refused.Reason, clusterv1beta1.TaintCordoned) {
			return "kubectl fleetgate uncordon " + member
		}
		return fmt.Sprintf("remove the taint (kubectl fleetgate taint %s KEY-), or add a toleration to the policy", member)
	case "ClusterAffinity":
		return fmt.Sprintf("label the member to match the policy (kubectl label membercluster %s KEY=VALUE), or change the policy", member)
	case "TopologySpreadConstraints":
		return "add members in more topology domains, raise maxSkew, or set whenUnsatisfiable to ScheduleAnyway"
	case "ClusterEligibility":
		return "check the member: kubectl fleetgate why member/" + member
	}
	return "show the scheduling decision: kubectl fleetgate simulate " + placement
}

// blocked is the answer for a cordoned member from which an eviction of the placement is blocked.
// Only the newest eviction counts, and only while the member is cordoned: evictions of an earlier
// drain say nothing about the current state.
func (f *Facts) blocked(member string) []Problem {
	m := f.member(member)
	if m == nil || !cordoned(m) {
		return nil
	}
	var newest *placementv1beta1.ClusterResourcePlacementEviction
	for i := range f.Evictions {
		e := &f.Evictions[i]
		if e.Spec.ClusterName != member || e.Spec.PlacementName != f.Placement.GetName() {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&e.CreationTimestamp) {
			newest = e
		}
	}
	if newest == nil {
		return nil
	}
	executed := meta.FindStatusCondition(newest.Status.Conditions, placementv1beta1.ConditionEvictionExecuted)
	if executed == nil || executed.Status != metav1.ConditionFalse {
		return nil
	}
	return []Problem{{Object: f.object(), Member: member, Reason: executed.Message,
		Remedy: fmt.Sprintf("wait until more members have the placement, or change ClusterResourcePlacementDisruptionBudget %s; then run kubectl fleetgate drain %s", newest.Spec.PlacementName, member)}}
}

func cordoned(m *clusterv1beta1.MemberCluster) bool {
	return slices.ContainsFunc(m.Spec.Taints, func(t clusterv1beta1.Taint) bool { return t.Key == clusterv1beta1.TaintCordoned })
}

// Scheduled is true if the policy has all the members that it asks for.
func (f *Facts) Scheduled() bool {
	return meta.IsStatusConditionTrue(f.Placement.GetStatus().Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
}

func (f *Facts) member(name string) *clusterv1beta1.MemberCluster {
	for i := range f.Members { // No copy per member: this is called for each of a thousand bindings.
		if f.Members[i].Name == name {
			return &f.Members[i]
		}
	}
	return nil
}

// remedied adds the remedy to an answer that has none.
func (f *Facts) remedied(a *Problem) {
	if a.Remedy != "" {
		return
	}
	a.remedyFor(a.code, a.Reason, f.Name)
	if strings.Contains(f.Name, "/") {
		a.Remedy = strings.Replace(a.Remedy, "annotate clusterresourceplacement "+f.Name,
			fmt.Sprintf("annotate -n %s resourceplacement %s", f.Placement.GetNamespace(), f.Placement.GetName()), 1)
	}
}
