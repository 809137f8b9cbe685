// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestSetSuspension_ReportsOneAtATime(t *testing.T) {
	const selection, tenancy, override = placementv1beta1.ReasonConfirmationRequired, placementv1beta1.ReasonTenancyConfirmationRequired, placementv1beta1.ReasonOverrideConfirmationRequired
	for name, tc := range map[string]struct {
		reported, reason string
		ends             bool
		want             string
	}{
		"first":                                 {"", override, false, override},
		"again":                                 {tenancy, tenancy, false, tenancy},
		"selection replaces all":                {tenancy, selection, false, selection},
		"tenancy replaces overrides":            {override, tenancy, false, tenancy},
		"tenancy leaves the selection":          {selection, tenancy, false, selection},
		"overrides leave all":                   {tenancy, override, false, tenancy},
		"unknown reason is replaced":            {"Other", override, false, override},
		"end":                                   {override, override, true, ""},
		"end of one that is not reported":       {selection, tenancy, true, selection},
		"end of the selection leaves overrides": {override, selection, true, override},
		"end of nothing":                        {"", selection, true, ""},
	} {
		placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		if tc.reported != "" {
			placement.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionRemovalSuspended, Status: metav1.ConditionTrue, Reason: tc.reported, ObservedGeneration: 2}}
		}
		var condition *metav1.Condition
		if !tc.ends {
			condition = &metav1.Condition{}
		}
		changed, got := SetSuspension(placement, tc.reason, condition), ""
		if c := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended); c != nil {
			got = c.Reason
		}
		if got != tc.want || changed != (tc.want != tc.reported) {
			t.Errorf("%s: reason %q, want %q; changed %t", name, got, tc.want, changed)
		}
	}
}

func TestRecordTime_StopsWhileAnyRemovalIsSuspended(t *testing.T) {
	now := time.Now()
	since := metav1.NewTime(now.Add(-time.Hour))
	if got := RecordTime(nil, now); !got.Equal(now) {
		t.Errorf("without a suspended removal: %s, want %s", got, now)
	}
	for _, reason := range suspensions {
		conditions := []metav1.Condition{{Type: placementv1beta1.ConditionRemovalSuspended, Reason: reason, LastTransitionTime: since}}
		if got := RecordTime(conditions, now); !got.Equal(since.Time) {
			t.Errorf("%s: %s, want %s", reason, got, since)
		}
	}
}
