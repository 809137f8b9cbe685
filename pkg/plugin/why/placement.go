// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

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
)

// Facts are what was read about a placement.
type Facts struct {
	// Placement is what is asked about, Name as people name it.
	Placement placementv1beta1.PlacementObject
	Name      string
	// Bindings are those of the placement.
	Bindings []placementv1beta1.BindingObject
	// Members are those of the fleet; where the placement is on the one that is asked about, that
	// one is enough.
	Members []clusterv1beta1.MemberCluster
	// Member is the one that is asked about; empty: all.
	Member string
	// Refusals say by member why the scheduler would not pick it now: the rule, and its words.
	// They are read for one member that is not picked, and where the policy lacks members.
	Refusals map[string]Refusal
	// Removals are what Works of the placement say of objects that are not gone from members.
	Removals []Removal
	// Evictions are those of the placement.
	Evictions []placementv1beta1.ClusterResourcePlacementEviction
}

// Refusal is a rule's no to a member.
type Refusal struct{ Rule, Reason string }

// Removal is what a Work says of objects that are to go and are not gone.
type Removal struct{ Member, Message string }

// Placement returns what is wrong with a placement, or with it on one member: the first is
// the answer, and none means that it is well.
func Placement(f *Facts) []Answer {
	answers := f.wrong()
	for i := range answers {
		f.remedied(&answers[i])
	}
	return answers
}

// wrong is Placement without what to do, where that is to be read from what is wrong. A thousand
// members that say the same are one answer by then.
func (f *Facts) wrong() []Answer {
	if whole := f.whole(); len(whole) > 0 {
		for i := range whole {
			whole[i].Member = f.Member
		}
		return whole
	}
	if f.Member != "" {
		return f.onMember(f.Member)
	}
	return append(merged(f.everywhere()), f.notPicked()...)
}

func (f *Facts) object() string { return "placement " + f.Name }

// whole is what keeps all members from it.
func (f *Facts) whole() []Answer {
	if placementv1beta1.Paused(f.Placement) {
		return []Answer{{Object: f.object(), Reason: "the placement is paused, nothing of it changes on any member"}}
	}
	status := f.Placement.GetStatus()
	scheduled := meta.FindStatusCondition(status.Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
	switch {
	case f.Placement.GetDeletionTimestamp() != nil && len(f.Removals) > 0:
		var all []Answer
		for _, removal := range f.Removals {
			all = append(all, f.removing(removal))
		}
		return all
	case f.Placement.GetDeletionTimestamp() != nil:
		return []Answer{{Object: f.object(), Reason: fmt.Sprintf("it is being deleted, and %d members have to take it away first", len(f.Bindings)),
			Remedy: "wait; a member that is away for good has to leave: kubectl fleetgate leave MEMBER"}}
	case scheduled == nil:
		return []Answer{{Object: f.object(), Reason: "no gateway has looked at it", Remedy: "see whether one leads: kubectl fleetgate diagnose"}}
	case scheduled.Status == metav1.ConditionFalse && scheduled.Reason == placementv1beta1.ReasonInvalidResourceSelectors:
		return []Answer{{Object: f.object(), Reason: scheduled.Message, code: scheduled.Reason}}
	}
	for _, kind := range []string{placementv1beta1.ConditionResourcesWithheld, placementv1beta1.ConditionResourcesUnreadable, placementv1beta1.ConditionResourcesTooLarge} {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return []Answer{{Object: f.object(), Reason: c.Message, Remedy: remedyOfRights[c.Reason]}}
		}
	}
	if status.SelectsNothing() {
		return []Answer{{Object: f.object(), Reason: "spec.resourceSelectors match nothing on the hub, so nothing is placed"}}
	}
	return nil
}

// removing is the answer for a member from which something is not gone. The agent's message ends with
// the command that helps.
func (f *Facts) removing(of Removal) Answer {
	reason, command, _ := strings.Cut(of.Message, ". If the controller that removes them is gone, run on the member: ")
	a := Answer{Object: f.object(), Member: of.Member, Reason: "being removed from " + of.Member + ": " + reason}
	if command != "" {
		a.Remedy = "if the controller that removes these finalizers is gone, run on " + of.Member + ": " + command
	}
	return a
}

// remedyOfRights is what to do, by the reason of the condition, where something selected is not placed.
var remedyOfRights = map[string]string{
	placementv1beta1.ReasonAuthorMayNot:    "have somebody who may read these kinds write the placement again, with the command in the message",
	placementv1beta1.ReasonKindUnavailable: "restore the conversion webhook or the API server behind the kind, or delete its CustomResourceDefinition or APIService",
	placementv1beta1.ReasonObjectTooLarge:  "split the objects",
	placementv1beta1.ReasonGatewayMayNot:   "label a ClusterRole for these kinds with " + placementv1beta1.PlaceableLabel + "=true",
}

// everywhere are the answers of all members that have something wrong, members by name.
func (f *Facts) everywhere() []Answer {
	var all []Answer
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

// merged tells what several members have in common once, with their number.
func merged(all []Answer) []Answer {
	var out []Answer
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

// notPicked is the answer for a policy that wants more members than fit.
func (f *Facts) notPicked() []Answer {
	if f.Scheduled() {
		return nil
	}
	scheduled := meta.FindStatusCondition(f.Placement.GetStatus().Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
	a := Answer{Object: f.object(), Reason: scheduled.Message, Remedy: "see what stands against each member: kubectl fleetgate simulate " + f.Name}
	var first string
	for _, name := range slices.Sorted(maps.Keys(f.Refusals)) {
		r := f.Refusals[name]
		a.Details = append(a.Details, fmt.Sprintf("member %s: %s", name, Plain(r.Reason)))
		first = cmp.Or(first, name)
	}
	if first != "" && len(f.Refusals) == 1 {
		a.Member, a.Remedy = first, remedyOfRule(f.Refusals[first], first, f.Name)
	}
	return []Answer{a}
}

// Bound is true if the placement has a binding for the member that is asked about.
func (f *Facts) Bound() bool { return f.bindingFor(f.Member) >= 0 }

func (f *Facts) bindingFor(member string) int {
	return slices.IndexFunc(f.Bindings, func(b placementv1beta1.BindingObject) bool { return b.GetSpec().TargetCluster == member })
}

// onMember is what is wrong on one member.
func (f *Facts) onMember(member string) []Answer {
	if at := f.bindingFor(member); at >= 0 {
		if found := f.ofBinding(f.Bindings[at]); len(found) > 0 {
			return found
		}
		return f.blocked(member)
	}
	a := Answer{Object: f.object(), Member: member, Reason: "the member is not picked"}
	if m := f.member(member); m != nil && !m.IsApproved() {
		a.Reason, a.Remedy = "the member is not picked, since nobody has approved it", "kubectl fleetgate approve "+member
		return []Answer{a}
	}
	if refused, ok := f.Refusals[member]; ok {
		a.Reason += ": " + refused.Reason
		a.Remedy = remedyOfRule(refused, member, f.Name)
		return []Answer{a}
	}
	return []Answer{f.unasked(a)}
}

// unasked is the answer for a member that no rule has refused: it was not looked at, as the
// policy has what it wants.
func (f *Facts) unasked(a Answer) Answer {
	a.Remedy = "see how it is decided: kubectl fleetgate simulate " + f.Name
	policy := f.Placement.GetSpec().Policy
	m := f.member(a.Member)
	switch {
	case policy != nil && policy.PlacementType == placementv1beta1.PickFixed:
		a.Reason, a.Remedy = "the member is not picked: it is not among clusterNames of the policy", "name it there"
	case m != nil && cordoned(m):
		a.Reason, a.Remedy = "the member is not picked, and it is cordoned", "kubectl fleetgate uncordon "+a.Member
	case policy != nil && policy.PlacementType == placementv1beta1.PickN:
		a.Reason = fmt.Sprintf("the member is not picked: the policy wants %d members, and has %d", ptr.Deref(policy.NumberOfClusters, 0), len(f.Bindings))
		a.Remedy = "raise numberOfClusters, or prefer the member by its labels; kubectl fleetgate simulate " + f.Name + " says how it is decided"
	}
	return a
}

// remedyOfRule is what to do about a rule's no.
func remedyOfRule(refused Refusal, member, placement string) string {
	switch refused.Rule {
	case "TaintToleration":
		if strings.Contains(refused.Reason, clusterv1beta1.TaintCordoned) {
			return "kubectl fleetgate uncordon " + member
		}
		return fmt.Sprintf("take the taint away (kubectl fleetgate taint %s KEY-), or have the policy tolerate it", member)
	case "ClusterAffinity":
		return fmt.Sprintf("label the member as the policy asks (kubectl label membercluster %s KEY=VALUE), or change the policy", member)
	case "TopologySpreadConstraints":
		return "have members of more domains, raise maxSkew, or choose ScheduleAnyway"
	case "ClusterEligibility":
		return "see how the member is: kubectl fleetgate why member/" + member
	}
	return "see how it is decided: kubectl fleetgate simulate " + placement
}

// blocked says of a member that is cordoned, and from which the placement was to go, that it
// may not. What was asked for in an earlier drain, or before the last question, says nothing
// any more.
func (f *Facts) blocked(member string) []Answer {
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
	return []Answer{{Object: f.object(), Member: member, Reason: executed.Message,
		Remedy: fmt.Sprintf("wait until more members have it, or change ClusterResourcePlacementDisruptionBudget %s; then kubectl fleetgate drain %s", newest.Spec.PlacementName, member)}}
}

func cordoned(m *clusterv1beta1.MemberCluster) bool {
	return slices.ContainsFunc(m.Spec.Taints, func(t clusterv1beta1.Taint) bool { return t.Key == clusterv1beta1.TaintCordoned })
}

// Scheduled is true if the policy has all the members that it wants.
func (f *Facts) Scheduled() bool {
	return meta.IsStatusConditionTrue(f.Placement.GetStatus().Conditions, f.Placement.ConditionType(placementv1beta1.ConditionScheduled))
}

func (f *Facts) member(name string) *clusterv1beta1.MemberCluster {
	for i := range f.Members { // Without a copy of each: a thousand bindings look here, one by one.
		if f.Members[i].Name == name {
			return &f.Members[i]
		}
	}
	return nil
}

// remedied completes an answer with what to do.
func (f *Facts) remedied(a *Answer) {
	if a.Remedy != "" {
		return
	}
	a.remedyFor(a.code, a.Reason, f.Name)
	if strings.Contains(f.Name, "/") {
		a.Remedy = strings.Replace(a.Remedy, "annotate clusterresourceplacement "+f.Name,
			fmt.Sprintf("annotate -n %s resourceplacement %s", f.Placement.GetNamespace(), f.Placement.GetName()), 1)
	}
}
