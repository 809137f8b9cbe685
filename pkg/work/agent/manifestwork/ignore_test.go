// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"crypto/md5" // as the code does
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

const scaled = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"default","labels":{"a":"1","b":"2"}},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"main","image":"m:1"},{"name":"proxy","image":"p:1"}]}}}}`

func TestLeaving_RemovesIgnoredFields(t *testing.T) {
	present := func(f workv1.IgnoreField) []workv1.IgnoreField {
		f.Condition = workv1.IgnoreFieldsOnSpokePresent
		return []workv1.IgnoreField{f}
	}
	without := func(old string) string { return strings.Replace(scaled, old, "", 1) }
	for name, tc := range map[string]struct {
		fields []workv1.IgnoreField
		want   string // the lean manifest
		wrong  string // part of the error
	}{
		"nothing":                                   {nil, scaled, ""},
		"a JSONPath":                                {present(workv1.IgnoreField{JSONPaths: []string{".spec.replicas"}}), without(`"replicas":3,`), ""},
		"a JSONPath into a list":                    {present(workv1.IgnoreField{JSONPaths: []string{`.spec.template.spec.containers[?(@.name=="proxy")].image`}}), without(`,"image":"p:1"`), ""},
		"a JSONPath to nothing":                     {present(workv1.IgnoreField{JSONPaths: []string{".spec.none.at"}}), scaled, ""},
		"a JSONPath that is none":                   {present(workv1.IgnoreField{JSONPaths: []string{".spec[.replicas"}}), "", "JSONPath error in '.spec[.replicas'"},
		"a JSONPath to a list":                      {present(workv1.IgnoreField{JSONPaths: []string{".spec.template.spec.containers[0]"}}), "", "it must end with a dot"},
		"a JSONPath to everything below everything": {present(workv1.IgnoreField{JSONPaths: []string{"..a..b..c"}}), "", "only once"},
		"a pointer":                                 {present(workv1.IgnoreField{JSONPointers: []string{"/metadata/labels/b"}}), without(`,"b":"2"`), ""},
		"a pointer to nothing":                      {present(workv1.IgnoreField{JSONPointers: []string{"/metadata/none/b"}}), scaled, ""},
		"a pointer without a slash":                 {present(workv1.IgnoreField{JSONPointers: []string{"metadata"}}), "", "JSON Pointer error in 'metadata'"},
		"a pointer to the name":                     {present(workv1.IgnoreField{JSONPointers: []string{"/metadata/name"}}), "", "kind or name"},
		"jq":                                        {present(workv1.IgnoreField{JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "proxy")`}}), without(`,{"name":"proxy","image":"p:1"}`), ""},
		"jq to nothing":                             {present(workv1.IgnoreField{JQPathExpressions: []string{".spec.none.at"}}), scaled, ""},
		"jq that does not parse":                    {present(workv1.IgnoreField{JQPathExpressions: []string{".spec["}}), "", "JQ expression error in '.spec['"},
		"jq that is no path":                        {present(workv1.IgnoreField{JQPathExpressions: []string{"1"}}), "", "JQ expression error in '1'"},
		"jq without an end":                         {present(workv1.IgnoreField{JQPathExpressions: []string{"range(1e18)"}}), "", "JQ expression error in"},
		"jq that reads":                             {present(workv1.IgnoreField{JQPathExpressions: []string{"input"}}), "", "JQ expression error in"},
		"on change, which is written": {[]workv1.IgnoreField{{Condition: workv1.IgnoreFieldsOnSpokeChange, JSONPaths: []string{".spec.replicas"}}},
			scaled, ""},
		"on change, wrong": {[]workv1.IgnoreField{{Condition: workv1.IgnoreFieldsOnSpokeChange, JQPathExpressions: []string{"["}}}, "", "JQ expression error"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := leaving(t.Context(), []byte(scaled), tc.fields)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("the error is %v, want %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var want, lean map[string]any
			text, _ := json.Marshal(got.Lean.Object)
			if json.Unmarshal([]byte(tc.want), &want) != nil || json.Unmarshal(text, &lean) != nil {
				t.Fatal("no JSON")
			}
			if diff := cmp.Diff(want, lean); diff != "" {
				t.Errorf("the lean manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpecHash_IgnoresFieldsWithOnSpokePresent(t *testing.T) {
	hash := func(manifest string, condition workv1.IgnoreFieldsCondition) string {
		t.Helper()
		got, err := leaving(t.Context(), []byte(manifest), []workv1.IgnoreField{{Condition: condition, JSONPaths: []string{".spec.replicas"}}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Hash
	}
	other := strings.Replace(scaled, `"replicas":3`, `"replicas":4`, 1)
	if hash(scaled, workv1.IgnoreFieldsOnSpokePresent) != hash(other, workv1.IgnoreFieldsOnSpokePresent) {
		t.Error("with OnSpokePresent another value has another hash")
	}
	if hash(scaled, workv1.IgnoreFieldsOnSpokeChange) == hash(other, workv1.IgnoreFieldsOnSpokeChange) {
		t.Error("with OnSpokeChange another value has the same hash")
	}
}

func TestSpecHash_EqualsTheHashOfOCM(t *testing.T) {
	const written = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"creationTimestamp":null,"name":"web","namespace":"default","uid":"1","generation":2},
		"spec":{"replicas":3,"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}}}},"status":{}}`
	got, err := leaving(t.Context(), []byte(written), []workv1.IgnoreField{{Condition: workv1.IgnoreFieldsOnSpokePresent, JSONPaths: []string{".spec.replicas"}}})
	if err != nil {
		t.Fatal(err)
	}
	// It is the MD5 of how Go prints the manifest without its UID, times that are not set and
	// what is left to others.
	sum := md5.Sum([]byte("&{map[apiVersion:apps/v1 kind:Deployment metadata:map[generation:2 name:web namespace:default] " +
		"spec:map[template:map[metadata:map[labels:map[app:web]]]] status:map[]]}"))
	if want := hex.EncodeToString(sum[:]); got.Hash != want {
		t.Errorf("the hash is %s, want %s", got.Hash, want)
	}
	if metadata := got.Lean.Object["metadata"].(map[string]any); len(metadata) != 2 || got.Lean.Object["status"] != nil {
		t.Errorf("what is applied is %v", got.Lean.Object)
	}
}

func FuzzIgnoredFields(f *testing.F) {
	for _, path := range []string{".spec.replicas", "/spec/replicas", ".spec | .replicas", "..", "[.]", "/", "def f: f; f", "limit(3; repeat(1))"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, field := range []workv1.IgnoreField{{JSONPaths: []string{path}}, {JSONPointers: []string{path}}, {JQPathExpressions: []string{path}}} {
			got, err := leaving(t.Context(), []byte(scaled), []workv1.IgnoreField{field})
			if err == nil && (got.Lean.GetName() != "web" || got.Lean.GetKind() != "Deployment") {
				t.Errorf("%q takes the name away", path)
			}
		}
	})
}
