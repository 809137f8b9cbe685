// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDecode_KeepsTheFieldsOfTheAuthor(t *testing.T) {
	got, err := Decode([]byte(`{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {
			"name": "web", "namespace": "shop", "labels": {"a": "b"}, "finalizers": ["example.com/f"],
			"uid": "1", "resourceVersion": "2", "generation": 3, "creationTimestamp": null, "selfLink": "x",
			"managedFields": [], "ownerReferences": [{"name": "o"}], "deletionTimestamp": "2026-01-01T00:00:00Z"
		},
		"spec": {"replicas": 2}, "status": {"replicas": 1}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop",
			"labels":     map[string]any{"a": "b"},
			"finalizers": []any{"example.com/f"},
		},
		"spec": map[string]any{"replicas": int64(2)},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("decoded object (-want +got):\n%s", diff)
	}
}

func TestDecode_IgnoresNullsInMetadataAndBuiltInKinds(t *testing.T) {
	const rest = `"metadata": {"name": "a", "namespace": null, "generateName": null, "annotations": null, "finalizers": null,
		"labels": {"a": null, "b": "c"}}, "spec": {"strategy": null, "list": [null, {"env": null, "name": "x"}]}}`
	for kind, spec := range map[string]map[string]any{
		`{"apiVersion": "apps/v1", "kind": "Deployment", `:    {"list": []any{nil, map[string]any{"name": "x"}}},
		`{"apiVersion": "example.com/v1", "kind": "Widget", `: {"strategy": nil, "list": []any{nil, map[string]any{"name": "x", "env": nil}}},
	} {
		got, err := Decode([]byte(kind + rest))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"b": "c"}}, "spec": spec}
		delete(got.Object, "apiVersion")
		delete(got.Object, "kind")
		if diff := cmp.Diff(want, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}

func TestDropUnsetTimes_CoversAllMetadata(t *testing.T) {
	got := map[string]any{
		"creationTimestamp": nil, // which is no metadata
		"metadata":          map[string]any{"name": "a", "creationTimestamp": nil},
		"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"creationTimestamp": "2026-01-01T00:00:00Z"}},
			"manifests": []any{
				map[string]any{"metadata": map[string]any{"creationTimestamp": nil}, "metadataName": nil},
				"text", nil,
			},
		},
	}
	DropUnsetTimes(got)
	want := map[string]any{
		"creationTimestamp": nil,
		"metadata":          map[string]any{"name": "a"},
		"spec": map[string]any{
			"template":  map[string]any{"metadata": map[string]any{"creationTimestamp": "2026-01-01T00:00:00Z"}},
			"manifests": []any{map[string]any{"metadata": map[string]any{}, "metadataName": nil}, "text", nil},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestDecode_RejectsInvalidManifests(t *testing.T) {
	cases := map[string]struct {
		raw  string
		want string // part of the message that names the remedy
	}{
		"nothing":                      {"", "empty"},
		"no JSON":                      {"apiVersion: v1", "not a JSON object"},
		"a JSON list":                  {"[]", "not a JSON object"},
		"two documents":                {`{"kind":"A"}{"kind":"B"}`, "not a JSON object"},
		"no apiVersion":                {`{"kind":"ConfigMap","metadata":{"name":"a"}}`, "apiVersion"},
		"an apiVersion of three parts": {`{"apiVersion":"a/b/c","kind":"ConfigMap","metadata":{"name":"a"}}`, "apiVersion"},
		"no kind":                      {`{"apiVersion":"v1","metadata":{"name":"a"}}`, "kind"},
		"a kind that is a number":      {`{"apiVersion":"v1","kind":1,"metadata":{"name":"a"}}`, "kind"},
		"no metadata":                  {`{"apiVersion":"v1","kind":"ConfigMap"}`, "metadata"},
		"no name":                      {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`, "metadata.name"},
		"a name that is a path":        {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a/b"}}`, "metadata.name"},
		"a name that is a parent":      {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":".."}}`, "metadata.name"},
		"a namespace that is a path":   {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b/c"}}`, "metadata.namespace"},
		"a namespace that is a map":    {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":{}}}`, "metadata.namespace"},
		"labels that are no strings":   {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"b":1}}}`, "metadata.labels"},
		"annotations in a list":        {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":[]}}`, "metadata.annotations"},
		"a list of objects":            {`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"name":"a"},"items":[]}`, "list"},
		"an oversized object":          {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + strings.Repeat("a", MaxBytes) + `"}}`, "limit"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(tc.raw))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error %q does not mention %q", err, tc.want)
			}
			if errors.Is(err, ErrGenerateName) {
				t.Error("it is taken for a generated name")
			}
		})
	}
}

func TestDecode_KeepsGenerateNameOfNamedObjects(t *testing.T) {
	object, err := Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a-x7k2p","generateName":"a-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := object.GetGenerateName(); got != "a-" {
		t.Errorf("generateName is %q, want %q", got, "a-")
	}
}

func TestDecode_RejectsGenerateName(t *testing.T) {
	_, err := Decode([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`))
	if !errors.Is(err, ErrGenerateName) {
		t.Errorf("error is %v, want ErrGenerateName", err)
	}
}

func TestIdentify(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "shop"},
	}}
	want := Ref{
		Ordinal: 3, Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"}
	got := Identify(3, object, "deployments")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("identifier (-want +got):\n%s", diff)
	}
	if text := KeyOf(got).String(); text != "Deployment.apps shop/web" {
		t.Errorf("the key reads %q", text)
	}
	if diff := cmp.Diff(Ref{Ordinal: 1}, Identify(1, nil, "")); diff != "" {
		t.Errorf("identifier of an unreadable manifest (-want +got):\n%s", diff)
	}
}

func TestKey_IgnoresTheVersion(t *testing.T) {
	old := Ref{Ordinal: 1, Group: "batch", Version: "v1beta1", Kind: "CronJob", Resource: "cronjobs", Namespace: "a", Name: "b"}
	now := old
	now.Version, now.Ordinal, now.Resource = "v1", 7, ""
	if KeyOf(old) != KeyOf(now) {
		t.Errorf("%v and %v are taken for two objects", KeyOf(old), KeyOf(now))
	}
}

// TestKeyIn_MatchesFieldNamesExactly: fields that are only called almost like those of an object name
// another one to encoding/json, and none to an API server.
func TestKeyIn_MatchesFieldNamesExactly(t *testing.T) {
	key, is := KeyIn([]byte(`{"apiVersion":"v1","kind":"ConfigMap","\u212aind":"Secret","metadata":{"namespace":"a","name":"b","name\u017fpace":"c","NAME":"d"}}`))
	if want := (Key{Kind: "ConfigMap", Namespace: "a", Name: "b"}); !is || key != want {
		t.Errorf("key = %v, want %v", key, want)
	}
}

func TestDecode_EncodesEqualManifestsEqually(t *testing.T) {
	decoded := func(raw string) string {
		t.Helper()
		object, err := Decode([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded(t, object))
	}
	a := decoded(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"2"}}`)
	b := decoded(`{"data": {"y":"2", "x":"1"}, "metadata":{"name":"a","uid":"5"},"kind":"ConfigMap","apiVersion":"v1"}`)
	c := decoded(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","y":"3"}}`)
	if a != b {
		t.Error("order of keys or fields of the server change the text")
	}
	if a == c {
		t.Error("another value has the same text")
	}
}

func TestWave(t *testing.T) {
	order := []schema.GroupResource{
		{Resource: "namespaces"},
		{Resource: "secrets"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
		{Group: "apps", Resource: "deployments"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Group: "example.com", Resource: "widgets"},
	}
	for wave, resource := range order {
		if got := DependencyWaves().Of(resource); got != wave {
			t.Errorf("%s is in wave %d, want %d", resource, got, wave)
		}
	}
	if got := DependencyWaves().Of(schema.GroupResource{Group: "example.com", Resource: "secrets"}); got != len(DependencyWaves()) {
		t.Errorf("a custom resource with the name of a built-in one is in wave %d", got)
	}
}

func encoded(t *testing.T, object *unstructured.Unstructured) []byte {
	t.Helper()
	text, err := Encode(object)
	if err != nil {
		t.Fatalf("an accepted manifest cannot be encoded: %v", err)
	}
	return text
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}`,
		`{"apiVersion":"v1","kind":"List","items":[{}]}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"a-"}}`,
		`{"metadata":[]}`, `null`, `{}`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, err := Decode(raw)
		if err != nil {
			return
		}
		if object.GetName() == "" || object.GetKind() == "" || object.GetAPIVersion() == "" {
			t.Errorf("an object without identity was accepted: %s", raw)
		}
		if strings.ContainsRune(object.GetName()+object.GetNamespace(), '/') {
			t.Errorf("a path was accepted as a name: %s", raw)
		}
		if object.GetUID() != "" || len(object.GetOwnerReferences()) > 0 || object.GetResourceVersion() != "" {
			t.Errorf("what only a server sets was kept: %s", raw)
		}
		text := encoded(t, object)
		again, err := Decode(text)
		if err != nil {
			t.Fatalf("what was accepted once is refused: %v", err)
		}
		if !bytes.Equal(text, encoded(t, again)) {
			t.Errorf("decoding twice changes the manifest: %s", raw)
		}
	})
}
