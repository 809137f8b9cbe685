// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	read := &unstructured.Unstructured{}
	if err := read.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestObjects(t *testing.T) {
	configMap := func(fields string) string { return "{apiVersion: v1, kind: ConfigMap, " + fields + "}" }
	secret := func(fields string) string { return "{apiVersion: v1, kind: Secret, " + fields + "}" }
	cases := map[string]struct {
		hub, member string
		want        []Detail
	}{
		"the same": {configMap("data: {a: b}"), configMap("data: {a: b}"), nil},
		"what an API server adds": {configMap("metadata: {name: a}"),
			configMap("metadata: {name: a, uid: x, resourceVersion: '1', generation: 2, creationTimestamp: now, managedFields: [], finalizers: [z], ownerReferences: [{uid: y}]}, status: {phase: x}"), nil},
		"another value": {configMap("data: {a: b}"), configMap("data: {a: c}"),
			[]Detail{{Path: "/data/a", ValueInHub: "b", ValueInMember: "c"}}},
		"a field of the hub only": {configMap("data: {a: b, c: d}"), configMap("data: {a: b}"),
			[]Detail{{Path: "/data/c", ValueInHub: "d"}}},
		"a field of the member only": {configMap("data: {a: b}"), configMap("data: {a: b, c: d}"),
			[]Detail{{Path: "/data/c", ValueInMember: "d"}}},
		"the first label": {configMap(""), configMap("metadata: {labels: {foo: bar}}"),
			[]Detail{{Path: "/metadata/labels/foo", ValueInMember: "bar"}}},
		"one label more": {configMap("metadata: {labels: {a: b}}"), configMap("metadata: {labels: {a: b, c: d}}"),
			[]Detail{{Path: "/metadata/labels/c", ValueInMember: "d"}}},
		"labels and annotations of the member's Kubernetes and of the fleet": {
			configMap("metadata: {annotations: {kubernetes-fleet.io/spec-hash: x}}"),
			configMap("metadata: {labels: {kubernetes.io/metadata.name: x}, annotations: {kubernetes-fleet.io/spec-hash: y, fleetgate.io/z: z}}"), nil},
		"the generation that an API server writes into a DaemonSet": {
			configMap(""), configMap("metadata: {annotations: {deprecated.daemonset.template.generation: '2'}}"), nil},
		"labels and annotations of Kubernetes in the manifest": {
			configMap("metadata: {labels: {app.kubernetes.io/name: x}, annotations: {nginx.ingress.kubernetes.io/rewrite-target: /}}"),
			configMap("metadata: {annotations: {nginx.ingress.kubernetes.io/rewrite-target: /x}}"),
			[]Detail{{Path: "/metadata/annotations/nginx.ingress.kubernetes.io~1rewrite-target", ValueInHub: "/", ValueInMember: "/x"},
				{Path: "/metadata/labels/app.kubernetes.io~1name", ValueInHub: "x"}}},
		"a key with a slash and a tilde": {configMap("data: {a/b~c: d}"), configMap("data: {}"),
			[]Detail{{Path: "/data/a~1b~0c", ValueInHub: "d"}}},
		"a null is nothing":       {configMap("data: null"), configMap(""), nil},
		"a number is a number":    {configMap("spec: {a: 1}"), configMap("spec: {a: 1.0}"), nil},
		"a number is not a text":  {configMap("spec: {a: 1}"), configMap("spec: {a: '1'}"), []Detail{{Path: "/spec/a", ValueInHub: "1", ValueInMember: "1"}}},
		"a text in place of maps": {configMap("spec: {a: {b: c}}"), configMap("spec: {a: x}"), []Detail{{Path: "/spec/a", ValueInHub: "map[b:c]", ValueInMember: "x"}}},
		"lists": {configMap("spec: [{a: b}, {c: d}, e]"), configMap("spec: [{a: x}, {c: d}]"),
			[]Detail{{Path: "/spec/0/a", ValueInHub: "b", ValueInMember: "x"}, {Path: "/spec/2", ValueInHub: "e"}}},
		"a longer list on the member": {configMap("spec: []"), configMap("spec: [a]"),
			[]Detail{{Path: "/spec/0", ValueInMember: "a"}}},
		"a map of the member only": {configMap(""), configMap("data: {foo: bar}"),
			[]Detail{{Path: "/data", ValueInMember: "map[foo:bar]"}}},
		"data of a Secret": {secret("data: {a: hidden}, type: Opaque"), secret("data: {a: other, b: more}, type: x"),
			[]Detail{
				{Path: "/data/a", ValueInHub: redacted, ValueInMember: redacted},
				{Path: "/data/b", ValueInMember: redacted},
				{Path: "/type", ValueInHub: "Opaque", ValueInMember: "x"}}},
		"all data of a Secret": {secret("stringData: {a: hidden}"), secret("data: {a: hidden}"),
			[]Detail{{Path: "/data", ValueInMember: redacted}, {Path: "/stringData", ValueInHub: redacted}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Objects(object(t, tc.hub), object(t, tc.member))); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjects_IsBounded(t *testing.T) {
	hub, member := object(t, "{apiVersion: v1, kind: ConfigMap, data: {}}"), object(t, "{apiVersion: v1, kind: ConfigMap, data: {}}")
	data := map[string]any{}
	for i := range 2 * MaxDetails {
		data[fmt.Sprintf("key-%d", i)] = strings.Repeat("ä", maxValue)
	}
	hub.Object["data"] = data
	found := Objects(hub, member)
	if len(found) != MaxDetails {
		t.Errorf("%d fields are reported, want %d", len(found), MaxDetails)
	}
	for _, detail := range found {
		if len(detail.ValueInHub) > maxValue+len(" ...") {
			t.Fatalf("a value of %d bytes is reported", len(detail.ValueInHub))
		}
	}
}

func TestObjects_ChangesNeitherObject(t *testing.T) {
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {kubernetes.io/x: y}}, data: {a: b}, status: {}}"
	hub, member := object(t, text), object(t, text)
	Objects(hub, member)
	if diff := cmp.Diff(object(t, text), hub); diff != "" {
		t.Errorf("the hub's object changed (-before +after):\n%s", diff)
	}
}

func FuzzObjectsFindsNothingInTwins(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{"a/b":"c"}},"data":{"x":[1,2.5,null,{"y":true}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		one, other := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if one.UnmarshalJSON([]byte(text)) != nil || other.UnmarshalJSON([]byte(text)) != nil {
			t.Skip("not an object")
		}
		if found := Objects(one, other); found != nil {
			t.Errorf("twins differ: %v", found)
		}
	})
}
