// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const web = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2}}`

var member = Member{
	Name: "member-1", Labels: map[string]string{"region": "eu", "example.com/tier": "gold"},
	Annotations: map[string]string{"proxy.example.com/https": "http://10.0.109.153:3129"},
	Properties: map[string]string{
		"infrastructure.fleetgate.io/pod-cidrs": "10.244.0.0/16,fd00:244::/48", "sly": "${MEMBER-CLUSTER-ANNOTATION-KEY-proxy.example.com/https}",
	},
}

func operation(op placementv1beta1.JSONPatchOverrideOperator, path, value string) placementv1beta1.JSONPatchOverride {
	return placementv1beta1.JSONPatchOverride{Operator: op, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(value)}}
}

func patching(operations ...placementv1beta1.JSONPatchOverride) placementv1beta1.OverrideRule {
	return placementv1beta1.OverrideRule{ClusterSelector: everywhere, JSONPatchOverrides: operations}
}

func manifestsOf(texts ...string) []placementv1beta1.Manifest {
	var all []placementv1beta1.Manifest
	for _, text := range texts {
		all = append(all, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return all
}

func TestApply(t *testing.T) {
	const service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"}}`
	deletes := placementv1beta1.OverrideRule{ClusterSelector: everywhere, OverrideType: placementv1beta1.DeleteOverrideType}
	cases := map[string]struct {
		set  Set
		want []string
	}{
		"no override": {nil, []string{web, service}},
		"replaced, added and removed, one after the other": {
			NewSet(ofWeb("a-0", patching(
				operation("replace", "/spec/replicas", "5"),
				operation("add", "/metadata/labels", `{"team":"shop"}`),
				operation("add", "/metadata/labels/x", `"y"`),
				operation("remove", "/metadata/labels/team", ""),
			))),
			[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"x":"y"},"name":"web","namespace":"shop"},"spec":{"replicas":5}}`, service},
		},
		"later override by name wins": {
			NewSet(ofWeb("b-0", patching(operation("replace", "/spec/replicas", "7"))), ofWeb("a-0", patching(operation("replace", "/spec/replicas", "5")))),
			[]string{strings.ReplaceAll(web, `:2`, `:7`), service},
		},
		"namespaced override comes after cluster-scoped one": {
			NewSet(ofCluster("z-0", "shop", deletesNothing), ofWeb("a-0", patching(operation("replace", "/spec/replicas", "5")))),
			[]string{strings.ReplaceAll(web, `:2`, `:5`), service},
		},
		"deleted resource":                        {NewSet(ofWeb("a-0", deletes)), []string{service}},
		"deleted namespace includes its contents": {NewSet(ofCluster("a-0", "shop", deletes)), nil},
		"rule for other members": {
			NewSet(ofWeb("a-0", placementv1beta1.OverrideRule{ClusterSelector: where("region", "us"), OverrideType: placementv1beta1.DeleteOverrideType})),
			[]string{web, service},
		},
		"variables in strings only": {
			NewSet(ofWeb("a-0", patching(operation("add", "/metadata/annotations",
				`{"${MEMBER-CLUSTER-NAME}":"${MEMBER-CLUSTER-NAME}.${MEMBER-CLUSTER-LABEL-KEY-example.com/tier}-${MEMBER-CLUSTER-LABEL-KEY-region}","n":"${OTHER} $"}`)))),
			[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"${MEMBER-CLUSTER-NAME}":"member-1.gold-eu","n":"${OTHER} $"},"name":"web","namespace":"shop"},"spec":{"replicas":2}}`, service},
		},
		"variables from properties and annotations": {
			NewSet(ofWeb("a-0", patching(operation("replace", "/spec",
				`{"args":["--cluster-cidr=${MEMBER-CLUSTER-PROPERTY-infrastructure.fleetgate.io/pod-cidrs}"],"proxy":"${MEMBER-CLUSTER-ANNOTATION-KEY-proxy.example.com/https}"}`)))),
			[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"args":["--cluster-cidr=10.244.0.0/16,fd00:244::/48"],"proxy":"http://10.0.109.153:3129"}}`, service},
		},
		"values of members are not expanded again": {
			NewSet(ofWeb("a-0", patching(operation("replace", "/spec", `"${MEMBER-CLUSTER-PROPERTY-sly}, ${MEMBER-CLUSTER-OTHER}"`)))),
			[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":"${MEMBER-CLUSTER-ANNOTATION-KEY-proxy.example.com/https}, ${MEMBER-CLUSTER-OTHER}"}`, service},
		},
		"numbers keep their digits": {
			NewSet(ofWeb("a-0", patching(operation("replace", "/spec", `{"n":12345678901234567890,"of":["${MEMBER-CLUSTER-NAME}"]}`)))),
			[]string{`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"n":12345678901234567890,"of":["member-1"]}}`, service},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			given := manifestsOf(web, service)
			got, err := tc.set.Apply(given, member)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, manifestsOf(tc.want...)), decoded(t, got)); diff != "" {
				t.Errorf("manifests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(manifestsOf(web, service), given); diff != "" {
				t.Errorf("the input changed (-want +got):\n%s", diff)
			}
		})
	}
}

// deletesNothing selects the member and has no operation.
var deletesNothing = placementv1beta1.OverrideRule{ClusterSelector: everywhere}

// decoded decodes manifests, because the order of keys does not matter.
func decoded(t *testing.T, manifests []placementv1beta1.Manifest) []any {
	t.Helper()
	var all []any
	for _, m := range manifests {
		decoder := json.NewDecoder(bytes.NewReader(m.Raw))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
	}
	return all
}

func TestApply_Refuses(t *testing.T) {
	cases := map[string]struct {
		operation placementv1beta1.JSONPatchOverride
		want      string
	}{
		"missing path":                {operation("replace", "/spec/paused", "true"), `Deployment.apps shop/web: override snapshot "shop/a-0": replace /spec/paused: `},
		"missing label":               {operation("add", "/spec/x", `"${MEMBER-CLUSTER-LABEL-KEY-zone}"`), `member "member-1" has no label "zone"`},
		"missing property":            {operation("add", "/spec/x", `"${MEMBER-CLUSTER-PROPERTY-zone}"`), `member "member-1" has no property "zone"`},
		"missing annotation":          {operation("add", "/spec/x", `"${MEMBER-CLUSTER-ANNOTATION-KEY-zone}"`), `member "member-1" has no annotation "zone"`},
		"unterminated variable":       {operation("add", "/spec/x", `"${MEMBER-CLUSTER-LABEL-KEY-zone"`), "has no closing brace"},
		"missing value":               {operation("add", "/spec/x", ""), "value is missing"},
		"another name":                {operation("replace", "/metadata/name", `"evil"`), "must not change apiVersion, kind, name or namespace"},
		"another namespace":           {operation("replace", "/metadata/namespace", `"kube-system"`), "must not change apiVersion, kind, name or namespace"},
		"another kind":                {operation("replace", "/kind", `"ClusterRoleBinding"`), "must not change apiVersion, kind, name or namespace"},
		"too large for an API server": {operation("add", "/spec/x", `"`+strings.Repeat("x", 2<<20)+`"`), "bytes long, the limit is"},
		"invalid annotations":         {operation("add", "/metadata/annotations", `"x"`), "Deployment.apps shop/web: " + invalid},
		"no operation of RFC 6902":    {operation("merge", "/spec/x", "1"), "merge /spec/x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := NewSet(ofWeb("a-0", patching(tc.operation))).Apply(manifestsOf(web), member)
			if err == nil {
				t.Fatalf("accepted: %s", got[0].Raw)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %q, want %q in it", err, tc.want)
			}
		})
	}
}

func FuzzApply(f *testing.F) {
	f.Add(web, "/spec/replicas", `"${MEMBER-CLUSTER-NAME}"`)
	f.Add(web, "/metadata/name", `{"a":["${MEMBER-CLUSTER-LABEL-KEY-region}"]}`)
	f.Add(`{"kind":"A"}`, "", "null")
	f.Fuzz(func(t *testing.T, manifest, path, value string) {
		set := NewSet(ofWeb("a-0", patching(operation("add", path, value))), ofCluster("b-0", "", patching(operation("replace", path, value))))
		got, err := set.Apply(manifestsOf(manifest), member)
		if err != nil {
			return
		}
		before, _ := identify([]byte(manifest))
		after, err := identify(got[0].Raw)
		if err != nil || after != before {
			t.Errorf("%s became %s", manifest, got[0].Raw)
		}
	})
}
