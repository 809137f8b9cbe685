// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestPlacement_NamesMembersThatARolloutWaitsFor(t *testing.T) {
	available := condition(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonAllWorkAreAvailable, "")
	unavailable := condition(placementv1beta1.ConditionAvailable, metav1.ConditionFalse, placementv1beta1.ReasonNotAllWorkAreAvailable, "")
	untracked := condition(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable, "")
	untracked.LastTransitionTime = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, test := range map[string]struct {
		others map[string]metav1.Condition
		period *int
		want   string
	}{
		"unavailable":     {map[string]metav1.Condition{"a": unavailable, "b": available}, nil, " (not available: a)"},
		"many":            {map[string]metav1.Condition{"a": unavailable, "b": unavailable, "c": unavailable, "d": unavailable, "e": unavailable}, nil, " (not available: a, b, c and 2 more)"},
		"untracked":       {map[string]metav1.Condition{"a": untracked}, nil, " (a counts as available from 03:05:05 UTC on, after unavailablePeriodSeconds (60), because"},
		"untracked, long": {map[string]metav1.Condition{"a": untracked}, ptr.To(3600), " (a counts as available from 04:04:05 UTC on, after unavailablePeriodSeconds (3600), because"},
		"neither":         {map[string]metav1.Condition{"a": available}, nil, ". Remedy: "},
	} {
		f := placed(func(f *Facts, p *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			p.Spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{UnavailablePeriodSeconds: test.period}
			b.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionRolloutStarted, metav1.ConditionFalse,
				placementv1beta1.ReasonRolloutNotStartedYet, "It waits")}
			for member, is := range test.others {
				other := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "of-" + member}}
				other.Spec.TargetCluster, other.Spec.State, other.Spec.ResourceSnapshotName = member, placementv1beta1.BindingBound, "shop-0-snapshot"
				other.Status.Conditions = []metav1.Condition{is}
				f.Bindings = append(f.Bindings, other)
			}
		})
		if got := Placement(f); len(got) == 0 || !strings.HasPrefix(got[0].String(), "placement shop on member m: not rolled out: It waits"+test.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
