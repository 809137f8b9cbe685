// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestBase_OfASecretHasNoValues(t *testing.T) {
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	manifest := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"a":"b"}},"data":{"kept":"aGlkZGVu","left":"aGlkZGVu"},"stringData":{"plain":"hidden"},"type":"Opaque"}`
	base := Base(secret, []byte(manifest))
	want := `{"apiVersion":"v1","data":{"kept":"","left":""},"kind":"Secret","metadata":{"labels":{"a":"b"},"name":"s"},"stringData":{"plain":""},"type":"Opaque"}`
	if diff := cmp.Diff(want, string(base)); diff != "" {
		t.Errorf("base (-want +got):\n%s", diff)
	}
	patch, err := Merger{Known: scheme.Scheme}.ThreeWay(secret, base,
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"kept":"aGlkZGVu"}}`),
		[]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","labels":{"a":"b"},"resourceVersion":"7"},"data":{"kept":"aGlkZGVu","left":"aGlkZGVu","theirs":"eA=="}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(patch.Data); !strings.Contains(got, `"data":{"left":null}`) || !strings.Contains(got, `"labels":null`) {
		t.Errorf("what left the manifest stays: %s", got)
	}
}

func TestBase_OfOtherKindsIsTheManifest(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{configMap, {Group: "example.com", Version: "v1", Kind: "Secret"}} {
		if got := string(Base(kind, []byte(`{"data":{"a":"b"}}`))); got != `{"data":{"a":"b"}}` {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if got := Base(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, []byte("hidden")); got != nil {
		t.Errorf("what is no object is kept: %s", got)
	}
}
