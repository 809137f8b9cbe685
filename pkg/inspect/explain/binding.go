// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// stages are the conditions of a placement on a member, in the order in which they become True.
var stages = [...]string{
	placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ConditionApplied,
	placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable,
}

// LastStage is the condition that becomes True last, for a placement and for each of its members.
func LastStage(placement placementv1beta1.PlacementObject) string {
	if s := placement.GetSpec().Strategy.ApplyStrategy; s != nil && s.Type == placementv1beta1.ReportDiff {
		return placementv1beta1.ConditionDiffReported
	}
	return placementv1beta1.ConditionAvailable
}

// ofBinding returns the problems on the member of a binding, the cause first.
func (f *Facts) ofBinding(b placementv1beta1.BindingObject) []Problem {
	member, status := b.GetSpec().TargetCluster, b.GetStatus()
	if m := f.member(member); m != nil {
		if a, blocked := f.unreachable(m, b); blocked {
			return []Problem{a}
		}
	}
	for _, removal := range f.Removals {
		if removal.Member == member {
			return []Problem{f.removing(removal)}
		}
	}
	if b.GetSpec().State == placementv1beta1.BindingUnscheduled {
		return []Problem{{Object: f.object(), Member: member, Reason: "the policy no longer selects the member; the rollout has not removed the placement from it yet",
			Remedy: "wait; maxUnavailable of the placement limits how many members change at a time"}}
	}
	if a, pending := f.notStarted(b); pending {
		return []Problem{a}
	}
	var found []Problem
	for _, kind := range stages {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		found = append(found, f.failed(b, c)...)
		break // The conditions after it are consequences.
	}
	if found = append(found, f.drifted(b)...); len(found) > 0 || meta.IsStatusConditionTrue(status.Conditions, LastStage(f.Placement)) {
		return found
	}
	inProgress := Problem{Object: f.object(), Member: member}
	inProgress.unreported(f.Name)
	return []Problem{inProgress}
}

// failed returns an answer per object for which a condition is False, or one for the condition
// itself if no object is listed.
func (f *Facts) failed(b placementv1beta1.BindingObject, c *metav1.Condition) []Problem {
	var found []Problem
	for i := range b.GetStatus().FailedPlacements {
		if failed := &b.GetStatus().FailedPlacements[i]; failed.Condition.Type == c.Type {
			found = append(found, Problem{
				Object: Ref(&failed.ResourceIdentifier), Member: b.GetSpec().TargetCluster, Reason: failedStage(c.Type) + failed.Condition.Message,
				Of: &failed.ResourceIdentifier, Live: c.Type == placementv1beta1.ConditionAvailable, code: failed.Condition.Reason,
			})
		}
	}
	if len(found) > 0 {
		return found
	}
	return []Problem{{Object: f.object(), Member: b.GetSpec().TargetCluster, Reason: failedStage(c.Type) + c.Message, code: c.Reason}}
}

// failedStage names the stage that failed, as the prefix of a message.
func failedStage(condition string) string {
	switch condition {
	case placementv1beta1.ConditionOverridden:
		return "override failed: "
	case placementv1beta1.ConditionWorkSynchronized:
		return "not delivered: "
	case placementv1beta1.ConditionApplied:
		return "not applied: "
	case placementv1beta1.ConditionDiffReported:
		return "diff not reported: "
	}
	return "not available: "
}

// unreachable is the answer for a member that is paused, or whose agent does not report.
func (f *Facts) unreachable(m *clusterv1beta1.MemberCluster, b placementv1beta1.BindingObject) (Problem, bool) {
	a := Problem{Object: f.object(), Member: m.Name}
	if placementv1beta1.Paused(m) {
		a.Reason = fmt.Sprintf("member %s is paused; its resources do not change", m.Name)
		return a, true
	}
	applied := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionApplied)
	if applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == b.GetGeneration() {
		return a, false
	}
	if _, silent := m.SilentSince(); silent {
		joined := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionJoined)
		a.Reason = "not delivered: the member's agent does not report: " + joined.Message
		a.Remedy = "start the agent, or " + checkAgentLog
		return a, true
	}
	return a, false
}

// notStarted is the answer for a member to which the rollout has not proceeded yet.
func (f *Facts) notStarted(b placementv1beta1.BindingObject) (Problem, bool) {
	started := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionRolloutStarted)
	member := b.GetSpec().TargetCluster
	if f.Placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		if b.GetSpec().State == placementv1beta1.BindingScheduled || started != nil && started.Status != metav1.ConditionTrue {
			return Problem{Object: f.object(), Member: member, Reason: "not rolled out: the strategy is External, and no update run has reached the member",
				Remedy: "create a ClusterStagedUpdateRun, or check what the existing runs wait for: kubectl fleetgate run list"}, true
		}
		return Problem{}, false
	}
	if started == nil || started.Status != metav1.ConditionFalse {
		return Problem{}, false
	}
	reason := "not rolled out: " + started.Message
	if awaited := f.awaited(); awaited != "" {
		reason += " (" + awaited + ")"
	}
	return Problem{Object: f.object(), Member: member, Reason: reason, code: placementv1beta1.ReasonRolloutNotStartedYet}, true
}

// driftedReason is the reason of an object whose drift has no further details.
const driftedReason = "the object was changed on the member (drift)"

// drifted returns an answer per object that was changed on the member.
func (f *Facts) drifted(b placementv1beta1.BindingObject) []Problem {
	var found []Problem
	for i := range b.GetStatus().DriftedPlacements {
		d := &b.GetStatus().DriftedPlacements[i]
		a := Problem{Object: Ref(&d.ResourceIdentifier), Member: b.GetSpec().TargetCluster, Reason: driftedReason, code: placementv1beta1.ReasonFoundDrifts}
		for _, field := range d.ObservedDrifts {
			a.Details = append(a.Details, fmt.Sprintf("%s is %s on the member and %s on the hub", untrusted.Line(field.Path), untrusted.Line(field.ValueInMember), untrusted.Line(field.ValueInHub)))
		}
		if len(d.ObservedDrifts) > 0 {
			a.Reason += ", first difference in " + d.ObservedDrifts[0].Path
		}
		found = append(found, a)
	}
	return found
}

// Ref formats an object as kind and name: Deployment shop/web.
func Ref(of *placementv1beta1.ResourceIdentifier) string {
	return RefOf(of.Kind, of.Namespace, of.Name)
}

// RefOf is Ref for the parts.
func RefOf(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}
