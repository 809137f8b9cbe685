// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems reads a placement's problems from its status: the member, the object and the
// message, which the status has in different lists. Events, `gateway diagnose` and people on call use
// them.
package problems

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Trouble is one kind of problem, described by the first member that has it.
type Trouble struct {
	// Condition is the type of the condition that is not True, as on members, or Drifted if objects
	// were changed on the member.
	Condition string
	// Member is the first member with the problem; empty if only the placement has it.
	Member string
	// Object is the first object with the problem there, such as "Deployment shop/web"; empty if no
	// object has it.
	Object string
	// Message describes the problem.
	Message string
	// Others is the number of further members with the same problem and the same value of Waits.
	Others int
	// Waits is true for states that can pass without an action, such as a rollout in progress.
	Waits bool
}

// Drifted is the Condition of a problem with objects that were changed on a member.
const Drifted = "Drifted"

// NothingSelected is the message for a placement without resources. Its conditions do not differ
// from the conditions of a working placement.
const NothingSelected = "spec.resourceSelectors match nothing on the hub, so nothing is placed: create what they name, or correct them"

// String is a sentence: on member "a", Deployment shop/web: it was refused (and on 3 more members).
func (t Trouble) String() string {
	text := t.Message
	if t.Object != "" {
		text = t.Object + ": " + text
	}
	if t.Member != "" {
		text = fmt.Sprintf("on member %q, %s", t.Member, text)
	}
	switch {
	case t.Others == 1:
		text += " (and on 1 more member)"
	case t.Others > 1:
		text += fmt.Sprintf(" (and on %d more members)", t.Others)
	}
	return text
}

// worst is the order in which people look at conditions of members: lasting problems before those that
// can pass.
var worst = [...]string{
	placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ConditionApplied,
	placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable, placementv1beta1.ConditionRolloutStarted,
}

// Of returns the problems of a placement, the worst first, at most one for each condition.
func Of(placement placementv1beta1.PlacementObject) []Trouble {
	return OfStatus(placement, placement.GetStatus())
}

// OfStatus is Of for a status that is not written yet.
func OfStatus(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) []Trouble {
	var lasting, waiting []Trouble
	if c := meta.FindStatusCondition(status.Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled)); c != nil && c.Status == metav1.ConditionFalse {
		lasting = append(lasting, Trouble{Condition: placementv1beta1.ConditionScheduled, Message: c.Message})
	} else if status.SelectsNothing() {
		waiting = append(waiting, Trouble{Condition: placementv1beta1.ConditionScheduled, Message: NothingSelected, Waits: true})
	}
	for _, condition := range worst {
		switch found, ok := ofMembers(status.PlacementStatuses, condition); {
		case ok && found.Waits:
			waiting = append(waiting, found)
		case ok:
			lasting = append(lasting, found)
		}
	}
	if drifted, ok := ofDrift(status.PlacementStatuses); ok {
		lasting = append(lasting, drifted)
	}
	if unmatched := UnmatchedNames(placement, status); unmatched != "" {
		waiting = append(waiting, Trouble{Condition: placementv1beta1.ConditionScheduled, Message: unmatched, Waits: true})
	}
	return append(lasting, waiting...)
}

// ofMembers is the problem of the members whose condition is False. A lasting problem takes precedence
// over one that can pass, and members with the other kind do not count.
func ofMembers(members []placementv1beta1.PerClusterPlacementStatus, condition string) (Trouble, bool) {
	var found Trouble
	count := 0
	for i := range members {
		c := meta.FindStatusCondition(members[i].Conditions, condition)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		one := OfMember(&members[i], c)
		switch {
		case count == 0 || found.Waits && !one.Waits:
			found, count = one, 1
		case found.Waits == one.Waits:
			count++
		}
	}
	found.Others = count - 1
	return found, count > 0
}

// OfMember is the problem of one member whose condition is not True, with the first object that has it.
func OfMember(member *placementv1beta1.PerClusterPlacementStatus, c *metav1.Condition) Trouble {
	t := Trouble{Condition: c.Type, Member: member.ClusterName, Message: c.Message, Waits: mayPass(c)}
	for i := range member.FailedPlacements {
		if failed := &member.FailedPlacements[i]; failed.Condition.Type == c.Type {
			t.Object, t.Message = ref(&failed.ResourceIdentifier), failed.Condition.Message
			break
		}
	}
	return t
}

// mayPass is true for a condition that a rollout passes through.
func mayPass(c *metav1.Condition) bool {
	switch c.Type {
	case placementv1beta1.ConditionAvailable, placementv1beta1.ConditionRolloutStarted:
		return true
	}
	return c.Reason == placementv1beta1.ReasonApplyInProgress || c.Reason == placementv1beta1.ReasonDiffReportInProgress
}

func ofDrift(members []placementv1beta1.PerClusterPlacementStatus) (Trouble, bool) {
	var found Trouble
	count := 0
	for i := range members {
		drifted := members[i].DriftedPlacements
		if len(drifted) == 0 {
			continue
		}
		if count++; count > 1 {
			continue
		}
		found = Trouble{Condition: Drifted, Member: members[i].ClusterName, Object: ref(&drifted[0].ResourceIdentifier), Message: "it was changed there"}
		if fields := drifted[0].ObservedDrifts; len(fields) > 0 {
			found.Message += ", first in " + fields[0].Path
		}
	}
	found.Others = count - 1
	return found, count > 0
}

func ref(of *placementv1beta1.ResourceIdentifier) string {
	if of.Namespace == "" {
		return of.Kind + " " + of.Name
	}
	return of.Kind + " " + of.Namespace + "/" + of.Name
}
