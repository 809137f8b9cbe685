// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// desiredStatus is the status of a set over all its Placements. works are those from before the
// latest writes, without deleted ones; problems are more problems than those of the Placements, empty
// ones do not count.
func desiredStatus(set *workv1alpha1.ManifestWorkReplicaSet, all []*placed, works []*workv1.ManifestWork, problems ...string) workv1alpha1.ManifestWorkReplicaSetStatus {
	status := set.Status.DeepCopy()
	status.PlacementsSummary = nil
	status.Summary = summaryOf(works)
	var verdict verdict
	for _, problem := range problems {
		if problem != "" {
			verdict.problems = append(verdict.problems, problem)
		}
	}
	for _, p := range all {
		verdict.add(p)
		if p.decided == nil {
			continue
		}
		status.Summary.Total += p.current.Len()
		status.PlacementsSummary = append(status.PlacementsSummary, workv1alpha1.PlacementSummary{
			Name:                    p.name,
			AvailableDecisionGroups: fmt.Sprintf("%d (%d / %d clusters applied)", p.decided.groupCount, p.current.Len(), p.decided.selected),
			Summary:                 workv1alpha1.ManifestWorkReplicaSetSummary{Total: p.current.Len()},
		})
	}
	verified := verdict.verified(status.Summary.Total)
	for _, condition := range []metav1.Condition{verified, verdict.rolledOut(), applied(&status.Summary, verified.Reason)} {
		condition.ObservedGeneration = set.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if condition := suspendedCondition(all); condition != nil {
		condition.ObservedGeneration = set.Generation
		meta.SetStatusCondition(&status.Conditions, *condition)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionRemovalSuspended)
	}
	return *status
}

// unnameable is the status of a set whose name is too long for its ManifestWorks.
func unnameable(set *workv1alpha1.ManifestWorkReplicaSet) workv1alpha1.ManifestWorkReplicaSetStatus {
	status := set.Status.DeepCopy()
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionManifestworkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonInvalidManifestWorkName,
		Message:            fmt.Sprintf("%q must be a label value of at most 63 characters: re-create it with a shorter name", labelValue(set)),
		ObservedGeneration: set.Generation,
	})
	return *status
}

// summaryOf counts the conditions of the remaining ManifestWorks.
func summaryOf(works []*workv1.ManifestWork) workv1alpha1.ManifestWorkReplicaSetSummary {
	var summary workv1alpha1.ManifestWorkReplicaSetSummary
	for _, work := range works {
		if work.DeletionTimestamp != nil {
			continue
		}
		for condition, count := range map[string]*int{
			workv1.ConditionApplied: &summary.Applied, workv1.ConditionAvailable: &summary.Available,
			workv1.ConditionProgressing: &summary.Progressing, workv1.ConditionDegraded: &summary.Degraded,
		} {
			if meta.IsStatusConditionTrue(work.Status.Conditions, condition) {
				*count++
			}
		}
	}
	return summary
}

// verdict combines the results of all Placements.
type verdict struct {
	missing, problems, stopped []string
	wanted, succeeded          int
}

func (v *verdict) add(p *placed) {
	if p.decided == nil {
		v.missing = append(v.missing, p.name)
		return
	}
	v.wanted += p.decided.wanted()
	v.succeeded += p.succeeded.Len()
	if len(p.decided.outside) > 0 {
		v.problems = append(v.problems, unbound(p.name, p.decided.outside))
	}
	switch {
	case p.suspended != "":
		v.problems = append(v.problems, p.suspended)
	case p.retained > 0:
		v.problems = append(v.problems, fmt.Sprintf("Placement %q: %s. %d ManifestWorks of other clusters are retained until the two agree", p.name, p.decided.short, p.retained))
	case p.refused != "":
		v.problems = append(v.problems, fmt.Sprintf("Placement %q: %s", p.name, p.refused))
	case p.plan.Stopped:
		v.stopped = append(v.stopped, fmt.Sprintf("the rollout to the clusters of Placement %q has stopped, as more failed or timed out than may", p.name))
	}
}

func (v *verdict) verified(total int) metav1.Condition {
	condition := metav1.Condition{Type: workv1alpha1.ConditionPlacementVerified, Status: metav1.ConditionFalse}
	switch {
	case len(v.missing) > 0:
		condition.Reason = workv1alpha1.ReasonPlacementDecisionNotFound
		condition.Message = "there is no Placement " + strings.Join(v.missing, ", ") + " in this namespace"
	case len(v.problems) > 0:
		condition.Reason, condition.Message = workv1alpha1.ReasonNotAsExpected, strings.Join(v.problems, "; ")
	case total == 0:
		condition.Reason = workv1alpha1.ReasonPlacementDecisionEmpty
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, workv1alpha1.ReasonAsExpected
	}
	return condition
}

func (v *verdict) rolledOut() metav1.Condition {
	if v.succeeded == v.wanted && len(v.missing) == 0 && len(v.problems) == 0 {
		return metav1.Condition{Type: workv1alpha1.ConditionPlacementRolledOut, Status: metav1.ConditionTrue, Reason: workv1alpha1.ReasonComplete}
	}
	return metav1.Condition{
		Type: workv1alpha1.ConditionPlacementRolledOut, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonProgressing,
		Message: strings.Join(v.stopped, "; "),
	}
}

// applied is the condition over all ManifestWorks; verified is the reason of condition
// PlacementVerified.
func applied(summary *workv1alpha1.ManifestWorkReplicaSetSummary, verified string) metav1.Condition {
	condition := metav1.Condition{Type: workv1alpha1.ConditionManifestworkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonNotAsExpected}
	switch {
	case summary.Total == 0 && verified == workv1alpha1.ReasonPlacementDecisionEmpty:
		condition.Reason = verified
	case summary.Total == 0:
	case summary.Available == summary.Total && summary.Progressing == 0 && summary.Degraded == 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, workv1alpha1.ReasonAsExpected
	case summary.Progressing > 0 && summary.Degraded == 0:
		condition.Reason = workv1alpha1.ReasonProcessing
	}
	return condition
}
