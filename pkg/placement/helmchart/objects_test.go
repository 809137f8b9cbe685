// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func builtin(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
	switch kind.Kind {
	case "ConfigMap":
		return true, true, nil
	case "ClusterRole", "CustomResourceDefinition":
		return false, true, nil
	}
	return false, false, nil
}

func object(kind, namespace, name string) Object {
	return Object{Template: "t/" + strings.ToLower(kind) + ".yaml", JSON: fmt.Appendf(nil, `{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":%q}}`, kind, name, namespace)}
}

func crd(kind, scope string) Object {
	return Object{Template: "t/crds.yaml", JSON: fmt.Appendf(nil,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s"},"spec":{"names":{"kind":%[1]q},"scope":%[2]q}}`, kind, scope)}
}

func TestManifestsOf_AddsNamespaceOfRelease(t *testing.T) {
	objects := []Object{
		object("ConfigMap", "", "a"), object("ConfigMap", "other", "b"), object("ClusterRole", "addons", "c"),
		crd("Pool", "Cluster"), object("Pool", "addons", "d"), crd("Lease", "Namespaced"), object("Lease", "", "e"), object("Unknown", "", "f"),
	}
	manifests, err := manifestsOf(&Release{Namespace: "addons"}, "test 0.1.0", objects, builtin)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifests {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
		if err := json.Unmarshal(m.Raw, &o); err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name)
	}
	want := []string{
		"ConfigMap addons/a", "ConfigMap other/b", "ClusterRole /c", "CustomResourceDefinition /Pool", "Pool /d",
		"CustomResourceDefinition /Lease", "Lease addons/e", "Unknown /f",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestManifestsOf_RefusesObjects(t *testing.T) {
	many := make([]Object, maxObjects+1)
	for i := range many {
		many[i] = object("ConfigMap", "", fmt.Sprint("c", i))
	}
	large := object("ConfigMap", "", strings.Repeat("a", maxBytes))
	cases := map[string]struct {
		objects []Object
		within  string
		want    string
	}{
		"too many":                           {objects: many, want: "the limit is 1000"},
		"too large":                          {objects: []Object{large}, want: "the limit is 1048576"},
		"one that is there twice":            {objects: []Object{object("ConfigMap", "", "a"), object("ConfigMap", "addons", "a")}, want: `t/configmap.yaml: ConfigMap "a" is in t/configmap.yaml too`},
		"one without a name":                 {objects: []Object{object("ConfigMap", "", "")}, want: "has no metadata.name"},
		"one where the fleet keeps accounts": {objects: []Object{object("ConfigMap", "fleet-system", "a")}, want: "in which the fleet keeps its accounts on members"},
		"one of another namespace":           {objects: []Object{object("ConfigMap", "kube-system", "a")}, within: "addons", want: `is in namespace "kube-system"`},
		"a cluster-scoped one":               {objects: []Object{object("ClusterRole", "", "a")}, within: "addons", want: "is in no namespace"},
		"one of which nobody knows where":    {objects: []Object{object("Unknown", "", "a")}, within: "addons", want: "is in no namespace"},
		"a cluster-scoped one in disguise":   {objects: []Object{object("ClusterRole", "addons", "a")}, within: "addons", want: "is in no namespace"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifestsOf(&Release{Namespace: "addons", Within: tc.within}, "test 0.1.0", tc.objects, builtin)
			var problem *Problem
			if !errors.As(err, &problem) || !strings.Contains(err.Error(), tc.want) || problem.Chart != "test 0.1.0" {
				t.Errorf("error = %v, want a problem with %q", err, tc.want)
			}
		})
	}
}
