// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// rolloutStatusOf is the rollout status of a cluster whose ManifestWork equals the current template. Conditions
// of an earlier generation do not count.
//
//   - Applied=False is a failure: the manifests reached the cluster and could not be applied.
//   - If condition rules make Progressing, it decides: False is done, True with
//     Degraded=True a failure, anything else in progress.
//   - Otherwise Available decides: True is done, Degraded=True a failure.
//
// A status begins with the condition, but not before the cluster was given the template: a
// condition that does not change keeps its time across a change of the spec.
func rolloutStatusOf(work *workv1.ManifestWork) rolloutstrategy.ClusterRolloutStatus {
	given := givenAt(work)
	if work.DeletionTimestamp != nil {
		return rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Pending}
	}
	now := func(kind string) *metav1.Condition {
		condition := meta.FindStatusCondition(work.Status.Conditions, kind)
		if condition == nil || condition.ObservedGeneration != work.Generation {
			return nil
		}
		return condition
	}
	state := func(state rolloutstrategy.State, condition *metav1.Condition) rolloutstrategy.ClusterRolloutStatus {
		return rolloutstrategy.ClusterRolloutStatus{State: state, Since: later(given, condition.LastTransitionTime.Time)}
	}
	applied, available, progressing, degraded := now(workv1.ConditionApplied), now(workv1.ConditionAvailable), now(workv1.ConditionProgressing), now(workv1.ConditionDegraded)
	stale := degraded == nil && meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionDegraded) != nil
	bad := degraded != nil && degraded.Status == metav1.ConditionTrue
	switch {
	case applied != nil && applied.Status == metav1.ConditionFalse:
		return state(rolloutstrategy.Failed, applied)
	case applied == nil || applied.Status != metav1.ConditionTrue, stale, progressing == nil && available == nil:
		return rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Pending, Since: given}
	case progressing != nil && progressing.Status == metav1.ConditionFalse:
		return state(rolloutstrategy.Succeeded, progressing)
	case bad && (progressing == nil || progressing.Status == metav1.ConditionTrue):
		return state(rolloutstrategy.Failed, degraded)
	case progressing != nil:
		return state(rolloutstrategy.Progressing, progressing)
	case available.Status == metav1.ConditionTrue:
		return state(rolloutstrategy.Succeeded, available)
	default:
		return state(rolloutstrategy.Progressing, available)
	}
}

// isApplied is true once the cluster has applied the ManifestWork's spec.
func isApplied(work *workv1.ManifestWork) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == work.Generation
}

// givenAt is when the cluster was given the template, zero if nobody recorded it.
func givenAt(work *workv1.ManifestWork) time.Time {
	at, err := time.Parse(time.RFC3339, work.Annotations[workv1alpha1.GivenAtAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
