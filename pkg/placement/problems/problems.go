// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems reads in a placement's status why it is not where it is wanted: the
// member, the object and the sentence that the status has somewhere in its lists. Events,
// `gateway diagnose` and people who are called at night start from there.
package problems

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Trouble is one kind of it, told by the first member that has it.
type Trouble struct {
	// Condition is the type of the condition that is not True, as members have it; Drifted
	// if objects were changed on the member.
	Condition string
	// Member is the first member that has it; empty if no member has, but the placement.
	Member string
	// Object is the first object that has it there, such as "Deployment shop/web"; empty if
	// it is none's.
	Object string
	// Message is the sentence about it.
	Message string
	// Others is how many more members have the same, and wait likewise or not.
	Others int
	// Waits is true for what may well pass by itself, such as a rollout that goes on.
	Waits bool
}

// Drifted is the Condition of objects that were changed on a member.
const Drifted = "Drifted"

// NothingSelected is the sentence about a placement that places nothing: its conditions are
// as good as those of one that works.
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

// worst is the order in which a person looks at conditions of members: what will not pass
// by itself before what may.
var worst = [...]string{
	placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ConditionApplied,
	placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable, placementv1beta1.ConditionRolloutStarted,
}

// Of returns the troubles of a placement, the worst first, at most one of each condition.
func Of(placement placementv1beta1.PlacementObject) []Trouble {
	return OfStatus(placement, placement.GetStatus())
}

// OfStatus is Of for a status that the placement is to have.
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
	return append(lasting, waiting...)
}

// ofMembers is the trouble of the members whose condition is False; a member where it will
// not pass by itself is told before one where it may, and those of the other sort are not
// counted to it.
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

// OfMember is the trouble of one member whose condition is not True, with the first object
// that has it.
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

// mayPass is true for a condition that a rollout goes through.
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
