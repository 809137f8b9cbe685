// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/problems"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// Observed is the input of a status.
type Observed struct {
	Placement placementv1beta1.PlacementObject
	// Policy is the latest policy snapshot.
	Policy placementv1beta1.PolicySnapshotObject
	// Snapshot is the name of the latest resource snapshot's master, Index its index, and Resources the
	// contents of its group. Under an external rollout it is the snapshot that all members are bound to
	// (see commonSnapshot); all three are empty if there is none.
	Snapshot  string
	Index     string
	Resources []placementv1beta1.ResourceIdentifier
	Bindings  []placementv1beta1.BindingObject
	// IndexOf returns the index of a resource snapshot, "" if it is deleted. It is called under an
	// external rollout, where members can be on any snapshot.
	IndexOf func(snapshot string) string
	// Changed is the creation time of the later snapshot; zero under an external rollout, where runs
	// decide when something changes.
	Changed time.Time
	// Leftovers are the objects that members retain since the placement no longer selects them, by
	// member.
	Leftovers map[string]retention.Leftover
	// Unreachable says since when a member has had no heartbeat, by member.
	Unreachable map[string]string
	// Misdirected is a ResourceOverride that names the placement with the scope of another kind; "" if there is none.
	Misdirected string
	// Departures are the members that still have the placement although they lost it.
	Departures departures
}

// Compute returns the placement's status. Conditions that did not change keep their transition times.
func Compute(o *Observed) *placementv1beta1.PlacementStatus {
	c := &computation{Observed: o, stages: stagesOf(o.Placement.GetSpec()), old: o.Placement.GetStatus()}
	c.status = &placementv1beta1.PlacementStatus{
		SelectedResources: o.Resources, ObservedResourceIndex: o.Index,
		Conditions: append([]metav1.Condition(nil), c.old.Conditions...),
	}
	c.retained()
	c.Departures.report(&c.status.Conditions, c.Placement.GetGeneration())
	if !c.scheduled() {
		c.keepOnly(nil)
		c.summarize()
		return c.status
	}
	counts := c.members()
	c.missing()
	c.sumUp(counts)
	c.status.Members = fmt.Sprintf("%d/%d", readyMembers(c.status), len(c.status.PlacementStatuses))
	c.summarize()
	return c.status
}

// computation is a status in construction.
type computation struct {
	*Observed
	stages      []stage
	old, status *placementv1beta1.PlacementStatus
	// lastReported is the number of members that are available as they last reported.
	lastReported int
}

// statusCounts counts members by stage and by the status of the stage's condition.
type statusCounts map[string]map[metav1.ConditionStatus]int

func (s statusCounts) count(kind string, status metav1.ConditionStatus) {
	if s[kind] == nil {
		s[kind] = map[metav1.ConditionStatus]int{}
	}
	s[kind][status]++
}

func (c *computation) set(kind string, condition metav1.Condition) {
	condition.Type, condition.ObservedGeneration = c.Placement.ConditionType(kind), c.Placement.GetGeneration()
	meta.SetStatusCondition(&c.status.Conditions, condition)
}

// Decided reports whether the scheduler has handled the policy snapshot for the placement's current
// generation.
func Decided(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject) bool {
	return decision(placement, policy) != nil
}

func decision(placement placementv1beta1.PlacementObject, policy placementv1beta1.PolicySnapshotObject) *metav1.Condition {
	decided := meta.FindStatusCondition(policy.GetStatus().Conditions, placementv1beta1.ConditionScheduled)
	if decided == nil || decided.ObservedGeneration != policy.GetGeneration() ||
		policy.GetStatus().ObservedCRPGeneration != placement.GetGeneration() {
		return nil
	}
	return decided
}

// scheduled sets the first condition, and reports whether it is known. It is unknown if clusterNames is
// empty, because clients wait until members are named.
func (c *computation) scheduled() bool {
	decided, pending := decision(c.Placement, c.Policy), "The scheduler has not handled the placement yet"
	if policy := c.Placement.GetSpec().Policy; policy != nil && policy.PlacementType == placementv1beta1.PickFixed && len(policy.ClusterNames) == 0 {
		decided, pending = nil, "The placement is on no member, since spec.policy.clusterNames is empty: name the members that it is for"
	}
	if decided == nil {
		c.set(placementv1beta1.ConditionScheduled, metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonSchedulePending, Message: pending,
		})
		return false
	}
	message := decided.Message
	if c.status.SelectsNothing() {
		message += "; " + problems.NothingSelected
	} else if unmatched := problems.UnmatchedNames(c.Placement, c.status); unmatched != "" {
		message += "; " + unmatched
	}
	c.set(placementv1beta1.ConditionScheduled, metav1.Condition{Status: decided.Status, Reason: decided.Reason, Message: message})
	return true
}

// members appends the placement's status on each selected member.
func (c *computation) members() statusCounts {
	bindings := make(map[string]placementv1beta1.BindingObject, len(c.Bindings))
	for _, b := range c.Bindings {
		if b.GetDeletionTimestamp() == nil && b.GetSpec().SchedulingPolicySnapshotName == c.Policy.GetName() {
			bindings[b.GetSpec().TargetCluster] = b
		}
	}
	before := make(map[string][]metav1.Condition, len(c.old.PlacementStatuses))
	for _, member := range c.old.PlacementStatuses {
		before[member.ClusterName] = member.Conditions
	}
	counts := statusCounts{}
	for _, d := range c.selected(bindings) {
		m := &member{computation: c, old: before[d.ClusterName], counts: counts}
		m.status.ClusterName = d.ClusterName
		m.observe(d, bindings[d.ClusterName])
		c.status.PlacementStatuses = append(c.status.PlacementStatuses, m.status)
	}
	return counts
}

// selected are the decisions for members. If there are more than a policy snapshot can name, the
// bindings are used.
func (c *computation) selected(bindings map[string]placementv1beta1.BindingObject) []placementv1beta1.ClusterDecision {
	var all []placementv1beta1.ClusterDecision
	named := map[string]bool{}
	for _, d := range c.Policy.GetStatus().TargetClusters {
		if d.Selected {
			all, named[d.ClusterName] = append(all, d), true
		}
	}
	if len(all) < objects.MaxDecisions {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		if b := bindings[name]; !named[name] && b.GetSpec().State != placementv1beta1.BindingUnscheduled {
			all = append(all, b.GetSpec().ClusterDecision)
		}
	}
	return all
}

// missing appends an entry for each member that the policy asks for and did not get.
func (c *computation) missing() {
	selected := len(c.status.PlacementStatuses)
	wanted, _ := objects.Wanted(c.Placement.GetSpec().Policy)
	for _, d := range c.Policy.GetStatus().TargetClusters {
		if d.Selected || selected >= wanted {
			continue
		}
		selected++
		m := &member{computation: c}
		m.set(placementv1beta1.ConditionScheduled, metav1.Condition{
			Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonScheduleFailed, Message: d.Reason,
		})
		keepTimes(m.status.Conditions, c.missingBefore(d.Reason))
		c.status.PlacementStatuses = append(c.status.PlacementStatuses, m.status)
	}
}

// missingBefore returns the conditions of a previous entry without a name and with the same reason.
func (c *computation) missingBefore(reason string) []metav1.Condition {
	for _, member := range c.old.PlacementStatuses {
		if member.ClusterName == "" && len(member.Conditions) == 1 && member.Conditions[0].Message == reason {
			return member.Conditions
		}
	}
	return nil
}

// keepTimes copies the transition times of conditions that did not change.
func keepTimes(conditions, before []metav1.Condition) {
	for i := range conditions {
		old := meta.FindStatusCondition(before, conditions[i].Type)
		if old != nil && old.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = old.LastTransitionTime
		}
	}
}

// sumUp sets the conditions of the placement as a whole.
func (c *computation) sumUp(counts statusCounts) {
	var set []stage
	for _, s := range c.stages {
		if len(counts[s.kind]) == 0 {
			break // There is no member, or none has reached this stage.
		}
		set = append(set, s)
		condition := c.sum(s, counts[s.kind])
		c.set(s.kind, condition)
		if condition.Status != metav1.ConditionTrue {
			break
		}
	}
	c.keepOnly(set)
}

func (c *computation) sum(s stage, counts map[metav1.ConditionStatus]int) metav1.Condition {
	if s.kind == rolloutStarted.kind && c.external() && (c.Snapshot == "" || counts[metav1.ConditionUnknown] > 0) {
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonRolloutControlledByExternalController,
			Message: "The rollout is controlled by update runs, which have not updated all members to the same resource snapshot yet"}
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionUnknown, metav1.ConditionFalse} {
		if n := counts[status]; n > 0 {
			return c.waitedFor(s, s.condition(status, n))
		}
	}
	done := s.condition(metav1.ConditionTrue, counts[metav1.ConditionTrue])
	if n := c.lastReported; s.kind == available.kind && n > 0 {
		done.Message += fmt.Sprintf(", on %d of them as last reported: they have no heartbeat", n)
	}
	if s.kind == overridden.kind && !c.hasOverrides() {
		done.Reason, done.Message = placementv1beta1.ReasonNoOverrideSpecified, "No override rules are configured for the selected resources"
	}
	if s.kind == overridden.kind && c.Misdirected != "" {
		done.Message += fmt.Sprintf("; ResourceOverride %q has no effect, because there is no ClusterResourcePlacement of this name: create it again with spec.placement.scope Namespaced", c.Misdirected)
	}
	return done
}

// waitedFor names the first member that a waiting rollout waits for.
func (c *computation) waitedFor(s stage, condition metav1.Condition) metav1.Condition {
	if s.kind != rolloutStarted.kind || condition.Status != metav1.ConditionFalse {
		return condition
	}
	for i := range c.status.PlacementStatuses {
		member := &c.status.PlacementStatuses[i]
		if notTrue(member) != nil && meta.IsStatusConditionTrue(member.Conditions, rolloutStarted.kind) {
			condition.Message += fmt.Sprintf("; the first that is waited for is %q", member.ClusterName)
			break
		}
	}
	return condition
}

// commonSnapshot is the resource snapshot that all selected members are bound to, or "".
func commonSnapshot(policy placementv1beta1.PolicySnapshotObject, bindings []placementv1beta1.BindingObject) string {
	bound := make(map[string]string, len(bindings))
	for _, b := range bindings {
		if b.GetDeletionTimestamp() == nil && b.GetSpec().SchedulingPolicySnapshotName == policy.GetName() {
			bound[b.GetSpec().TargetCluster] = b.GetSpec().ResourceSnapshotName
		}
	}
	common, first := "", true
	for _, d := range policy.GetStatus().TargetClusters {
		if !d.Selected {
			continue
		}
		if first {
			common, first = bound[d.ClusterName], false
		}
		if bound[d.ClusterName] != common {
			return ""
		}
	}
	return common
}

func (c *computation) external() bool {
	return c.Placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy
}

func (c *computation) hasOverrides() bool {
	for _, m := range c.status.PlacementStatuses {
		if len(m.ApplicableClusterResourceOverrides)+len(m.ApplicableResourceOverrides) > 0 {
			return true
		}
	}
	return false
}

func (c *computation) keepOnly(set []stage) {
	keep := map[string]bool{}
	for _, s := range set {
		keep[s.kind] = true
	}
	for _, s := range allStages() {
		if !keep[s.kind] {
			meta.RemoveStatusCondition(&c.status.Conditions, c.Placement.ConditionType(s.kind))
		}
	}
}
