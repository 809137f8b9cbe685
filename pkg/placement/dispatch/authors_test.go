// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// A user who could change a placement removed a Secret from its selectors, chose another member, and
// rolled the previous snapshot out to it.
func TestMayHave_LimitsOldSnapshotToCurrentAuthor(t *testing.T) {
	asking := &Authors{Resource: func(kind schema.GroupKind) (schema.GroupResource, bool, error) {
		switch kind.Kind {
		case "Secret":
			return schema.GroupResource{Resource: "secrets"}, true, nil
		case "ConfigMap":
			return schema.GroupResource{Resource: "configmaps"}, true, nil
		case "Broken":
			return schema.GroupResource{}, false, errors.New("no discovery")
		}
		return schema.GroupResource{}, false, nil
	}}
	holding := func(kinds ...string) *snapshot.Group {
		group := &snapshot.Group{}
		for _, kind := range kinds {
			group.Resources = append(group.Resources, placementv1beta1.ResourceIdentifier{Version: "v1", Kind: kind, Namespace: "shop", Name: "x"})
		}
		return group
	}
	from := func(master string) *placementv1beta1.Work {
		w := work("shop.p-work")
		w.Annotations = map[string]string{placementv1beta1.ParentResourceSnapshotNameAnnotation: master}
		return w
	}
	const configMaps, everything = `{"author":"alice","may":{"shop":["configmaps"]}}`, `{"author":"admin","may":{"shop":["*"]}}`
	cases := map[string]struct {
		authors *Authors
		result  string
		group   *snapshot.Group
		have    []*placementv1beta1.Work
		want    string
	}{
		"allowed kind":                                {asking, configMaps, holding("ConfigMap"), nil, ""},
		"forbidden kind is rejected":                  {asking, configMaps, holding("ConfigMap", "Secret"), nil, `it holds Secret "x": user "alice"`},
		"member with an older snapshot is rejected":   {asking, configMaps, holding("Secret"), []*placementv1beta1.Work{from("p-1-snapshot")}, `it holds Secret "x"`},
		"member that has the snapshot keeps it":       {asking, configMaps, holding("Secret"), []*placementv1beta1.Work{from("p-2-snapshot")}, ""},
		"author with all rights":                      {asking, everything, holding("Secret", "Gone"), nil, ""},
		"unknown kind is rejected":                    {asking, configMaps, holding("Gone"), nil, `it holds Gone "x"`},
		"failed lookup of a kind":                     {asking, configMaps, holding("Broken"), nil, "no discovery"},
		"unreadable author check is rejected":         {asking, "ask", holding("ConfigMap"), nil, `it holds ConfigMap "x"`},
		"placement without an author check":           {asking, "", holding("Secret"), nil, ""},
		"author check disabled":                       {nil, configMaps, holding("Secret"), nil, ""},
		"author without rights and an empty snapshot": {asking, "ask", holding(), nil, ""},
		"foreign namespace is rejected":               {asking, `{"author":"alice","may":{"other":["*"]}}`, holding("ConfigMap"), nil, `it holds ConfigMap "x"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
			if tc.result != "" {
				placement.Annotations = map[string]string{placementv1beta1.AuthorMayAnnotation: tc.result}
			}
			err := tc.authors.mayHave(placement, "p-2-snapshot", tc.group, tc.have)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	if err := asking.mayHave(nil, "p-2-snapshot", holding("Secret"), nil); err != nil {
		t.Errorf("deleted placement: %v", err)
	}
}
