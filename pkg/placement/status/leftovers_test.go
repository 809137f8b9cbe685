// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func TestCompute_ReportsDataOfMembersThatAreNoLongerSelected(t *testing.T) {
	o := &Observed{Placement: placementOf(nil), Policy: decided("member-2"), Leftovers: map[string]retention.Leftover{
		"member-1": {Objects: 3, Examples: []string{"PersistentVolumeClaim shop/data", "Namespace shop"}},
	}}
	status := Compute(o)
	c := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionDataRetained)
	if c == nil || c.Reason != placementv1beta1.ReasonNoLongerSelected ||
		!strings.HasPrefix(c.Message, `1 members retain objects since the placement no longer selects them: "member-1" has PersistentVolumeClaim shop/data, Namespace shop and 1 more. `) {
		t.Fatalf("condition %v", c)
	}
	*o.Placement.GetStatus(), o.Leftovers = *status, nil
	if c := meta.FindStatusCondition(Compute(o).Conditions, placementv1beta1.ConditionDataRetained); c != nil {
		t.Errorf("condition after they are gone: %v", c)
	}
}
