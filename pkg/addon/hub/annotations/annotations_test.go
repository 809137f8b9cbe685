// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package annotations

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCopy_FollowsTheCluster(t *testing.T) {
	const copied, host = "fleetgate.io/copied-annotations", "addon.open-cluster-management.io/hosting-cluster-name"
	for name, tc := range map[string]struct{ addOn, cluster, want map[string]string }{
		"nothing to copy":                 {nil, map[string]string{"people": "x"}, nil},
		"an annotation about add-ons":     {nil, map[string]string{host: "a", "people": "x"}, map[string]string{host: "a", copied: host}},
		"another value":                   {map[string]string{host: "a", copied: host}, map[string]string{host: "b"}, map[string]string{host: "b", copied: host}},
		"the cluster loses it":            {map[string]string{host: "a", copied: host, "people": "x"}, nil, map[string]string{"people": "x"}},
		"people wrote it on the add-on":   {map[string]string{host: "a"}, nil, map[string]string{host: "a"}},
		"the cluster's value counts":      {map[string]string{host: "a"}, map[string]string{host: "b"}, map[string]string{host: "b", copied: host}},
		"a list that names other things":  {map[string]string{"people": "x", copied: "people"}, nil, map[string]string{"people": "x"}},
		"a prefix of another group":       {nil, map[string]string{"addon.open-cluster-management.io.example.com/x": "a"}, nil},
		"two annotations in stable order": {nil, map[string]string{"addon.open-cluster-management.io/b": "2", "addon.open-cluster-management.io/a": "1"}, map[string]string{"addon.open-cluster-management.io/b": "2", "addon.open-cluster-management.io/a": "1", copied: "addon.open-cluster-management.io/a,addon.open-cluster-management.io/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			addOn, cluster := &metav1.ObjectMeta{Annotations: tc.addOn}, &metav1.ObjectMeta{Annotations: tc.cluster}
			for range 2 { // The second time changes nothing.
				Copy(addOn, cluster)
				if diff := cmp.Diff(tc.want, addOn.Annotations); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

func TestDiffer_IgnoresOtherAnnotations(t *testing.T) {
	with := func(pairs ...string) metav1.Object {
		annotations := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			annotations[pairs[i]] = pairs[i+1]
		}
		return &metav1.ObjectMeta{Annotations: annotations}
	}
	if Differ(with("people", "x"), with()) {
		t.Error("an annotation of people counts")
	}
	if !Differ(with("addon.open-cluster-management.io/a", "1"), with("addon.open-cluster-management.io/a", "2")) {
		t.Error("an annotation about add-ons does not count")
	}
}
