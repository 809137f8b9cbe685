// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// condition is one that began that many minutes after noon.
func condition(kind string, status metav1.ConditionStatus, generation int64, minutes int) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))}
}

func TestRolloutStatusOf_FollowsConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	applied := condition(workv1.ConditionApplied, yes, 2, 1)
	available := condition(workv1.ConditionAvailable, yes, 2, 5)
	progressing := func(status metav1.ConditionStatus) metav1.Condition {
		return condition(workv1.ConditionProgressing, status, 2, 7)
	}
	degraded := condition(workv1.ConditionDegraded, yes, 2, 9)
	at := func(state rolloutstrategy.State, minutes int) rolloutstrategy.ClusterRolloutStatus {
		return rolloutstrategy.ClusterRolloutStatus{State: state, Since: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	asked := at(rolloutstrategy.Pending, 0)
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       rolloutstrategy.ClusterRolloutStatus
	}{
		"nothing is reported":                   {nil, asked},
		"all conditions are outdated":           {[]metav1.Condition{condition(workv1.ConditionApplied, yes, 1, 1), condition(workv1.ConditionAvailable, yes, 1, 1)}, asked},
		"it is applied and nobody knows more":   {[]metav1.Condition{applied}, asked},
		"it is not known whether it is applied": {[]metav1.Condition{condition(workv1.ConditionApplied, unknown, 2, 1), available}, asked},
		"available before it is applied":        {[]metav1.Condition{available}, asked},
		"Degraded is outdated":                  {[]metav1.Condition{applied, available, condition(workv1.ConditionDegraded, no, 1, 1)}, asked},
		"it cannot be applied":                  {[]metav1.Condition{condition(workv1.ConditionApplied, no, 2, 3), available, progressing(no)}, at(rolloutstrategy.Failed, 3)},
		"no rule: available is done":            {[]metav1.Condition{applied, available}, at(rolloutstrategy.Succeeded, 5)},
		"no rule: not available":                {[]metav1.Condition{applied, condition(workv1.ConditionAvailable, no, 2, 4)}, at(rolloutstrategy.Progressing, 4)},
		"no rule: degraded has failed":          {[]metav1.Condition{applied, available, degraded}, at(rolloutstrategy.Failed, 9)},
		"an outdated rule does not count":       {[]metav1.Condition{applied, available, condition(workv1.ConditionProgressing, yes, 1, 1)}, at(rolloutstrategy.Succeeded, 5)},
		"a rule: done":                          {[]metav1.Condition{applied, progressing(no)}, at(rolloutstrategy.Succeeded, 7)},
		"a rule: done though not available":     {[]metav1.Condition{applied, condition(workv1.ConditionAvailable, no, 2, 4), progressing(no)}, at(rolloutstrategy.Succeeded, 7)},
		"a rule: done though degraded":          {[]metav1.Condition{applied, progressing(no), degraded}, at(rolloutstrategy.Succeeded, 7)},
		"a rule: progressing though available":  {[]metav1.Condition{applied, available, progressing(yes)}, at(rolloutstrategy.Progressing, 7)},
		"a rule: failed":                        {[]metav1.Condition{applied, available, progressing(yes), degraded}, at(rolloutstrategy.Failed, 9)},
		"a rule: nobody knows":                  {[]metav1.Condition{applied, available, progressing(unknown), degraded}, at(rolloutstrategy.Progressing, 7)},
		"a condition that has been so for long": {[]metav1.Condition{applied, condition(workv1.ConditionAvailable, yes, 2, -90)}, at(rolloutstrategy.Succeeded, 0)},
	} {
		work := &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{workv1alpha1.GivenAtAnnotation: noon.Format(time.RFC3339)}},
			Status:     workv1.ManifestWorkStatus{Conditions: tc.conditions},
		}
		if diff := cmp.Diff(tc.want, rolloutStatusOf(work)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRolloutStatusOf_WithoutTime(t *testing.T) {
	going := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		work *workv1.ManifestWork
		want rolloutstrategy.ClusterRolloutStatus
	}{
		"nobody noted when it was given": {&workv1.ManifestWork{}, rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Pending}},
		"what was noted is no time":      {&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1alpha1.GivenAtAnnotation: "x"}}}, rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Pending}},
		"it is being deleted": {&workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &going},
			Status: workv1.ManifestWorkStatus{Conditions: []metav1.Condition{
				condition(workv1.ConditionApplied, metav1.ConditionTrue, 0, 1), condition(workv1.ConditionAvailable, metav1.ConditionTrue, 0, 1),
			}},
		}, rolloutstrategy.ClusterRolloutStatus{State: rolloutstrategy.Pending}},
	} {
		if diff := cmp.Diff(tc.want, rolloutStatusOf(tc.work)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
