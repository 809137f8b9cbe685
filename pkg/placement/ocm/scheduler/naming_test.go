// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
)

func TestDesired_FitsPlacementsWithNamesOfEveryLength(t *testing.T) {
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		placement := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: strings.Repeat("p", length), UID: "1"}}
		w, s := &round{placement: placement}, &slice{name: "p-decision-1"}
		decision := w.desired(s)
		for key, value := range decision.Labels {
			if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
				t.Errorf("a name of %d characters: label %s: %v", length, key, wrong)
			}
		}
		if got := contentOf(decision).placement; got != placement.Name || !hasMeta(decision, placement, s) {
			t.Errorf("a name of %d characters is read as %q", length, got)
		}
	}
}
