// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// candidateOf translates a binding for Plan. wanted is the desired version of its member; paused is
// true while it is paused.
func candidateOf(b placementv1beta1.BindingObject, wanted string, paused bool) Candidate {
	spec := b.GetSpec()
	c := Candidate{
		Wanted: wanted, Current: version(spec.ResourceSnapshotName, spec.ClusterResourceOverrideSnapshots, spec.ResourceOverrideSnapshots),
		Observed: diffReported(b), Failed: Failed(b), Going: b.GetDeletionTimestamp() != nil, Paused: paused,
	}
	switch {
	case spec.State == placementv1beta1.BindingScheduled:
		c.Current = "" // It may have had a version, but gets one again.
	case spec.State == placementv1beta1.BindingUnscheduled:
		c.Wanted = ""
		if spec.ResourceSnapshotName == "" {
			c.Current = ""
		}
	}
	available := current(b, placementv1beta1.ConditionAvailable)
	if serving := servingBefore(b); serving != nil {
		c.Undispatched, available = true, serving
	}
	if available != nil && available.Status == metav1.ConditionTrue {
		c.Available = available.LastTransitionTime.Time
		c.Untracked = available.Reason == placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable
	}
	return c
}

// version is a text for what a binding is bound to; it is never empty.
func version(snapshot string, cluster []string, namespaced []placementv1beta1.NamespacedName) string {
	text := snapshot + "\n" + strings.Join(cluster, " ") + "\n"
	for _, o := range namespaced {
		text += o.Namespace + "/" + o.Name + " "
	}
	return text
}

func diffReported(b placementv1beta1.BindingObject) bool {
	reported := current(b, placementv1beta1.ConditionDiffReported)
	return reported != nil && reported.Status == metav1.ConditionTrue
}

// servingBefore is the last condition Available of a binding whose current version could not be sent to
// its member, because an override does not fit or a Work cannot be written. The member still has the
// previous version. It is nil if nothing was available there, or the current version was sent.
func servingBefore(b placementv1beta1.BindingObject) *metav1.Condition {
	if b.GetSpec().State != placementv1beta1.BindingBound || !undispatched(b) {
		return nil
	}
	c := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration >= b.GetGeneration() {
		return nil
	}
	return c
}

// undispatched reports whether a binding's current version could not be sent.
func undispatched(b placementv1beta1.BindingObject) bool {
	for _, kind := range []string{placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized} {
		if c := current(b, kind); c != nil && c.Status == metav1.ConditionFalse && !pending(c.Reason) {
			return true
		}
	}
	return false
}

// Failed reports whether a binding has a failure. Unfinished steps are no failures. Neither is a member
// that still serves the previous version because nothing could be sent to it.
func Failed(b placementv1beta1.BindingObject) bool {
	if servingBefore(b) != nil {
		return false
	}
	for _, kind := range []string{
		placementv1beta1.ConditionOverridden, placementv1beta1.ConditionWorkSynchronized,
		placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable,
	} {
		if c := current(b, kind); c != nil && c.Status == metav1.ConditionFalse && !pending(c.Reason) {
			return true
		}
	}
	return false
}

func pending(reason string) bool {
	switch reason {
	case placementv1beta1.ReasonOverriddenPending, placementv1beta1.ReasonWorkNotSynchronizedYet,
		placementv1beta1.ReasonApplyPending, placementv1beta1.ReasonResourceNotAvailableYet:
		return true
	}
	return false
}

// current returns a condition about the binding's current spec, or nil.
func current(b placementv1beta1.BindingObject, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(b.GetStatus().Conditions, kind)
	if c == nil || c.ObservedGeneration != b.GetGeneration() {
		return nil
	}
	return c
}
