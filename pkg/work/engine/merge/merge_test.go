// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

var (
	configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	widget     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func TestThreeWay(t *testing.T) {
	cases := map[string]struct {
		kind                        schema.GroupVersionKind
		original, modified, current string
		wantType                    types.PatchType
		want                        string // empty: nothing is sent
	}{
		"an object that has all that is asked for needs no patch": {
			kind:     configMap,
			original: `{"data":{"a":"1"}}`,
			modified: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}`,
			current:  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"7"},"data":{"a":"1","theirs":"x"}}`,
			wantType: types.StrategicMergePatchType,
		},
		"a value changed by hand is put back, a value added by hand stays": {
			kind:     configMap,
			original: `{"data":{"a":"1"}}`,
			modified: `{"data":{"a":"1"}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"data":{"a":"2","theirs":"x"}}`,
			wantType: types.StrategicMergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"data":{"a":"1"}}`,
		},
		"a key that the manifest no longer has is removed": {
			kind:     configMap,
			original: `{"data":{"a":"1","b":"2"}}`,
			modified: `{"data":{"a":"1"}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"data":{"a":"1","b":"2"}}`,
			wantType: types.StrategicMergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"data":{"b":null}}`,
		},
		"containers of a built-in kind are merged by name": {
			kind:     deployment,
			original: `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:1"}]}}}}`,
			modified: `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:2"}]}}}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"app:1"},{"name":"sidecar","image":"s:1"}]}}}}`,
			wantType: types.StrategicMergePatchType,
			want: `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{
				"$setElementOrder/containers":[{"name":"app"}],"containers":[{"name":"app","image":"app:2"}]}}}}`,
		},
		"lists of a custom resource are replaced": {
			kind:     widget,
			original: `{"spec":{"parts":[{"name":"a"}]}}`,
			modified: `{"spec":{"parts":[{"name":"b"}]}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"parts":[{"name":"a"},{"name":"theirs"}]}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"parts":[{"name":"b"}]}}`,
		},
		"an integer above 2^53 is not rounded": {
			kind:     widget,
			original: `{"spec":{"quota":9007199254740992}}`,
			modified: `{"spec":{"quota":9007199254740993,"limit":9223372036854775807}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"quota":9007199254740992}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"quota":9007199254740993,"limit":9223372036854775807}}`,
		},
		"an integer of a built-in kind above 2^53 is not rounded": {
			kind:     deployment,
			original: `{}`,
			modified: `{"spec":{"template":{"spec":{"securityContext":{"runAsUser":9007199254740993}}}}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{"securityContext":{"runAsUser":9007199254740992}}}}}`,
			wantType: types.StrategicMergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"template":{"spec":{"securityContext":{"runAsUser":9007199254740993}}}}}`,
		},
		"the same number in another form needs no patch": {
			kind:     widget,
			original: `{}`,
			modified: `{"spec":{"size":1,"list":[1.0,{"a":2}]}}`,
			current:  `{"spec":{"size":1.0,"list":[1,{"a":2.0}]}}`,
			wantType: types.MergePatchType,
		},
		"a null that the manifest had before, or that the object has, needs no patch": {
			kind:     widget,
			original: `{"spec":{"always":null}}`,
			modified: `{"spec":{"always":null,"unset":null,"is":null}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"always":"theirs","is":null}}`,
			wantType: types.MergePatchType,
		},
		"finalizers of others stay when the manifest changes its own": {
			kind:     widget,
			original: `{"metadata":{"finalizers":["old","ours"]}}`,
			modified: `{"metadata":{"finalizers":["ours","new"]}}`,
			current:  `{"metadata":{"resourceVersion":"7","finalizers":["old","theirs","ours"]}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7","finalizers":["theirs","ours","new"]}}`,
		},
		"finalizers of others stay when the manifest has none any more": {
			kind:     widget,
			original: `{"metadata":{"finalizers":["ours"]}}`,
			modified: `{"metadata":{"name":"w"}}`,
			current:  `{"metadata":{"name":"w","resourceVersion":"7","finalizers":["ours","theirs"]}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7","finalizers":["theirs"]}}`,
		},
		"a null that left the manifest is removed": {
			kind:     widget,
			original: `{"spec":{"a":null,"b":1}}`,
			modified: `{"spec":{"b":1}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"a":null,"b":1}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"a":null}}`,
		},
		"the last finalizer of a manifest is removed": {
			kind:     widget,
			original: `{"metadata":{"finalizers":["ours"]}}`,
			modified: `{"metadata":{"name":"w"}}`,
			current:  `{"metadata":{"name":"w","resourceVersion":"7","finalizers":["ours"]}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7","finalizers":null}}`,
		},
		"finalizers of others need no patch": {
			kind:     widget,
			original: `{"metadata":{"finalizers":["ours"]}}`,
			modified: `{"metadata":{"finalizers":["ours"]}}`,
			current:  `{"metadata":{"resourceVersion":"7","finalizers":["theirs","ours"]}}`,
			wantType: types.MergePatchType,
		},
		"a map becomes a text, and a text a map": {
			kind:     widget,
			original: `{"spec":{"a":{"b":1},"c":"x"}}`,
			modified: `{"spec":{"a":"x","c":{"b":1}}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"a":{"b":1},"c":"x"}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"a":"x","c":{"b":1}}}`,
		},
		"an object that was never applied before gains what is missing and loses nothing": {
			kind:     widget,
			modified: `{"spec":{"size":2}}`,
			current:  `{"metadata":{"resourceVersion":"7"},"spec":{"colour":"red"}}`,
			wantType: types.MergePatchType,
			want:     `{"metadata":{"resourceVersion":"7"},"spec":{"size":2}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			merger := Merger{Known: scheme.Scheme}
			got, err := merger.ThreeWay(tc.kind, []byte(tc.original), []byte(tc.modified), []byte(tc.current))
			if err != nil {
				t.Fatal(err)
			}
			if got.Type != tc.wantType {
				t.Errorf("patch type is %q, want %q", got.Type, tc.wantType)
			}
			if diff := cmp.Diff(document(t, tc.want), document(t, string(got.Data))); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

// A merge patch cannot set a null, and a field that is nullable and has a default would get the default.
func TestThreeWay_SetsNullsByAJSONPatch(t *testing.T) {
	got, err := Merger{Known: scheme.Scheme}.ThreeWay(widget,
		[]byte(`{"spec":{"a":{"b":1},"always":null,"gone":1}}`),
		[]byte(`{"spec":{"a":{"b":null},"always":null,"more":{"x/y":null,"z":1},"size":2}}`),
		[]byte(`{"metadata":{"resourceVersion":"7"},"spec":{"a":{"b":1,"c":2},"always":"theirs","gone":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"add","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/spec/a/b","value":null},` +
		`{"op":"add","path":"/spec/more","value":{"x/y":null,"z":1}},{"op":"add","path":"/spec/size","value":2},{"op":"remove","path":"/spec/gone","value":null}]`
	if got.Type != types.JSONPatchType || string(got.Data) != want {
		t.Errorf("got %s %s, want %s", got.Type, got.Data, want)
	}
}

func TestThreeWay_RejectsAnotherName(t *testing.T) {
	merger := Merger{Known: scheme.Scheme}
	_, err := merger.ThreeWay(configMap, nil,
		[]byte(`{"metadata":{"name":"a"}}`), []byte(`{"metadata":{"name":"b"}}`))
	if err == nil {
		t.Error("a patch that changes the name was made")
	}
}

func document(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	fields := map[string]any{}
	if err := utiljson.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}
