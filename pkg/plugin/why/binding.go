// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// way is the order in which a placement reaches a member.
var way = [...]string{
	placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized, placementv1beta1.ConditionApplied,
	placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable,
}

// LastStage is the condition that is True of a placement, or of it on a member, once it is
// where it is wanted.
func LastStage(placement placementv1beta1.PlacementObject) string {
	if s := placement.GetSpec().Strategy.ApplyStrategy; s != nil && s.Type == placementv1beta1.ReportDiff {
		return placementv1beta1.ConditionDiffReported
	}
	return placementv1beta1.ConditionAvailable
}

// ofBinding is what is wrong on the member of a binding, the cause first.
func (f *Facts) ofBinding(b placementv1beta1.BindingObject) []Answer {
	member, status := b.GetSpec().TargetCluster, b.GetStatus()
	if m := f.member(member); m != nil {
		if a, away := f.away(m, b); away {
			return []Answer{a}
		}
	}
	for _, removal := range f.Removals {
		if removal.Member == member {
			return []Answer{f.removing(removal)}
		}
	}
	if b.GetSpec().State == placementv1beta1.BindingUnscheduled {
		return []Answer{{Object: f.object(), Member: member, Reason: "the policy does not pick the member any more, the rollout has yet to take it away",
			Remedy: "wait; maxUnavailable of the placement says how many at a time"}}
	}
	if a, waits := f.notStarted(b); waits {
		return []Answer{a}
	}
	var found []Answer
	for _, kind := range way {
		c := meta.FindStatusCondition(status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		found = append(found, f.failed(b, c)...)
		break // What follows of it is no reason of its own.
	}
	if found = append(found, f.drifted(b)...); len(found) > 0 || meta.IsStatusConditionTrue(status.Conditions, LastStage(f.Placement)) {
		return found
	}
	onItsWay := Answer{Object: f.object(), Member: member}
	onItsWay.unreported(f.Name)
	return []Answer{onItsWay}
}

// failed are the objects that a condition is False for; without any, the condition itself.
func (f *Facts) failed(b placementv1beta1.BindingObject, c *metav1.Condition) []Answer {
	var found []Answer
	for i := range b.GetStatus().FailedPlacements {
		if failed := &b.GetStatus().FailedPlacements[i]; failed.Condition.Type == c.Type {
			found = append(found, Answer{
				Object: Ref(&failed.ResourceIdentifier), Member: b.GetSpec().TargetCluster, Reason: verb(c.Type) + failed.Condition.Message,
				Of: &failed.ResourceIdentifier, Live: c.Type == placementv1beta1.ConditionAvailable, code: failed.Condition.Reason,
			})
		}
	}
	if len(found) > 0 {
		return found
	}
	return []Answer{{Object: f.object(), Member: b.GetSpec().TargetCluster, Reason: verb(c.Type) + c.Message, code: c.Reason}}
}

// verb says in which step something has failed.
func verb(condition string) string {
	switch condition {
	case placementv1beta1.ConditionOverridden:
		return "not overridden: "
	case placementv1beta1.ConditionWorkSynchronized:
		return "not delivered: "
	case placementv1beta1.ConditionApplied:
		return "not applied: "
	case placementv1beta1.ConditionDiffReported:
		return "not compared: "
	}
	return "not available: "
}

// away is the answer for a member that cannot answer, or is not to change.
func (f *Facts) away(m *clusterv1beta1.MemberCluster, b placementv1beta1.BindingObject) (Answer, bool) {
	a := Answer{Object: f.object(), Member: m.Name}
	if placementv1beta1.Paused(m) {
		a.Reason = fmt.Sprintf("member %s is paused, nothing on it changes", m.Name)
		return a, true
	}
	applied := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionApplied)
	if applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == b.GetGeneration() {
		return a, false
	}
	if _, silent := m.SilentSince(); silent {
		joined := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionJoined)
		a.Reason = "not delivered: the member's agent is silent: " + joined.Message
		a.Remedy = "start the member's agent, or see what it says: kubectl logs -n fleet-system -l app=fleet-agent, on the member itself"
		return a, true
	}
	return a, false
}

// notStarted is the answer for a member whose turn has not come.
func (f *Facts) notStarted(b placementv1beta1.BindingObject) (Answer, bool) {
	started := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionRolloutStarted)
	member := b.GetSpec().TargetCluster
	if f.Placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		if b.GetSpec().State == placementv1beta1.BindingScheduled || started != nil && started.Status != metav1.ConditionTrue {
			return Answer{Object: f.object(), Member: member, Reason: "not rolled out: the strategy is External, and no update run has come to the member",
				Remedy: "make a ClusterStagedUpdateRun, or see what those that are there wait for: kubectl fleetgate run list"}, true
		}
		return Answer{}, false
	}
	if started == nil || started.Status != metav1.ConditionFalse {
		return Answer{}, false
	}
	return Answer{Object: f.object(), Member: member, Reason: "not rolled out: " + started.Message, code: placementv1beta1.ReasonRolloutNotStartedYet}, true
}

// drifted are the objects that somebody has changed on the member.
func (f *Facts) drifted(b placementv1beta1.BindingObject) []Answer {
	var found []Answer
	for i := range b.GetStatus().DriftedPlacements {
		d := &b.GetStatus().DriftedPlacements[i]
		a := Answer{Object: Ref(&d.ResourceIdentifier), Member: b.GetSpec().TargetCluster, Reason: "it was changed on the member", code: placementv1beta1.ReasonFoundDrifts}
		for _, field := range d.ObservedDrifts {
			a.Details = append(a.Details, fmt.Sprintf("%s is %s there, and %s on the hub", Plain(field.Path), Plain(field.ValueInMember), Plain(field.ValueInHub)))
		}
		if len(d.ObservedDrifts) > 0 {
			a.Reason += ", first in " + d.ObservedDrifts[0].Path
		}
		found = append(found, a)
	}
	return found
}

// Ref names an object as people do: Deployment shop/web.
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
