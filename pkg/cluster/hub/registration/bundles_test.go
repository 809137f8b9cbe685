// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestDisplayBundles_CountsPlacements(t *testing.T) {
	work := func(name, placement string, generation int64, conditions ...string) placementv1beta1.Work {
		w := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
		if placement != "" {
			w.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: placement}
		}
		for _, c := range conditions {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, ObservedGeneration: generation})
		}
		return w
	}
	const applied, available = placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable
	deleted := work("a", "shop", 2)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	compared := work("a", "shop", 2, placementv1beta1.ConditionDiffReported)
	compared.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	other := work("b", "shop", 2)
	other.Labels[placementv1beta1.ParentPlacementNamespaceLabel] = "team"
	tests := map[string]struct {
		works []placementv1beta1.Work
		want  string
	}{
		"none":                               {nil, "0/0"},
		"applied and available":              {[]placementv1beta1.Work{work("a", "shop", 2, applied, available)}, "1/1"},
		"applied only":                       {[]placementv1beta1.Work{work("a", "shop", 2, applied)}, "0/1"},
		"previous generation":                {[]placementv1beta1.Work{work("a", "shop", 1, applied, available)}, "0/1"},
		"second Work of a placement missing": {[]placementv1beta1.Work{work("a", "shop", 2, applied, available), work("b", "shop", 2)}, "0/1"},
		"first Work of a placement missing":  {[]placementv1beta1.Work{work("a", "shop", 2), work("b", "shop", 2, applied, available)}, "0/1"},
		"placements of one name":             {[]placementv1beta1.Work{work("a", "shop", 2, applied, available), other}, "1/2"},
		"Works without a placement":          {[]placementv1beta1.Work{work("a", "", 2, applied, available), work("b", "", 2)}, "1/2"},
		"deleted":                            {[]placementv1beta1.Work{deleted}, "0/0"},
		"differences reported":               {[]placementv1beta1.Work{compared}, "1/1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := displayBundles(tc.works); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
