// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reserved

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExisting(t *testing.T) {
	owned := func(group, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: group + "/v1", Kind: kind, Name: "w", UID: "u"}}}
	}
	takenOver := owned("placement.kubernetes-fleet.io", "AppliedWork")
	takenOver.Annotations = map[string]string{"fleetgate.io/taken-over": "true"}
	for name, tc := range map[string]struct {
		namespace metav1.ObjectMeta
		denied    bool
	}{
		"existed before":                {metav1.ObjectMeta{}, true},
		"is labelled":                   {metav1.ObjectMeta{Labels: map[string]string{"fleetgate.io/enter": "true"}}, false},
		"is labelled otherwise":         {metav1.ObjectMeta{Labels: map[string]string{"fleetgate.io/enter": "no"}}, true},
		"was created by a Work":         {owned("placement.kubernetes-fleet.io", "AppliedWork"), false},
		"was created by a ManifestWork": {owned("work.open-cluster-management.io", "AppliedManifestWork"), false},
		"is owned by others":            {owned("example.org", "AppliedWork"), true},
		"is owned by another kind":      {owned("placement.kubernetes-fleet.io", "Work"), true},
		"is owned by a ManifestWork":    {owned("work.open-cluster-management.io", "ManifestWork"), true},
		"was taken over":                {takenOver, true},
		"was left there by a Work":      {metav1.ObjectMeta{Annotations: map[string]string{"fleetgate.io/retained": "x"}}, false},
	} {
		tc.namespace.Name = "cert-manager"
		why := Existing(&tc.namespace)
		if (why != "") != tc.denied || tc.denied && !strings.Contains(why, "kubectl label namespace cert-manager fleetgate.io/enter=true") {
			t.Errorf("%s: %q, want a refusal: %t", name, why, tc.denied)
		}
	}
}
