// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

func TestDesiredLabels_FitPlacementsWithNamesOfEveryLength(t *testing.T) {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set"}}
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		placement := strings.Repeat("p", length)
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Labels: desiredLabels(set, placement)}}
		for key, value := range work.Labels {
			if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
				t.Errorf("a name of %d characters: label %s: %v", length, key, wrong)
			}
		}
		if c := (&changes{set: set}); !c.owns(work, placement) {
			t.Errorf("a ManifestWork for a Placement with a name of %d characters is not known again", length)
		}
	}
}
