// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// foundConfigMap returns a ConfigMap of the member with fields of several clients.
func foundConfigMap(owners ...metav1.OwnerReference) *unstructured.Unstructured {
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": "ns", "name": "a", "uid": "1", "resourceVersion": "7",
			"labels": map[string]any{"theirs": "l"}, "annotations": map[string]any{"theirs": "a"}, "finalizers": []any{"example.com/f"},
		},
		"data":   map[string]any{"a": "old", "theirs": "d"},
		"status": map[string]any{"s": "t"},
	}}
	live.SetOwnerReferences(owners)
	return live
}

// verbs returns the verbs of the requests to the member.
func verbs(e *Engine) []string {
	fake, ok := e.member.(*dynamicfake.FakeDynamicClient)
	if !ok {
		return []string{"this member does not tell"}
	}
	var verbs []string
	for _, action := range fake.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	return verbs
}

func TestReplace_KeepsLabelsAnnotationsOwnersFinalizersAndStatusOfOthers(t *testing.T) {
	other := recordRef("other", "2")
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), foundConfigMap(other))
	it := WithMode([]Item{configMapItem(t, "new")}, Mode{Method: Replace})[0]
	out := e.run(t.Context(), withoutMay(work), []Item{it})[0]
	if out.Refused != nil || out.Err != nil || !out.Owned {
		t.Fatalf("the result is %+v", out)
	}
	got, err := e.find(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	want := foundConfigMap(other, work.Record)
	want.Object["data"] = map[string]any{"a": "new"}
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
}

func TestReplace_WritesOnlyWhenTheShapeDiffers(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), foundConfigMap())
	it := WithMode([]Item{configMapItem(t, "new")}, Mode{Method: Replace})[0]
	work = withoutMay(work)
	e.run(t.Context(), work, []Item{it})
	written, _ := e.find(t.Context(), it)

	// The server fills something in; the status changes.
	filled := written.DeepCopy()
	filled.Object["immutable"] = false
	work.cache.setShape(it, filled)
	filled.Object["status"] = map[string]any{"s": "other"}
	filled.SetResourceVersion("9")
	filled.SetAnnotations(map[string]string{"theirs": "of a controller"})
	if needsReplacing(work, it, replacement(it, filled, work.Record), filled) {
		t.Error("an object with another status needs to be replaced")
	}
	unlabelled := filled.DeepCopy()
	unlabelled.SetOwnerReferences(nil)
	if !needsReplacing(work, it, replacement(it, unlabelled, work.Record), unlabelled) {
		t.Error("one that was disowned needs no replacement")
	}
	filled.Object["data"] = map[string]any{"a": "drifted"}
	if !needsReplacing(work, it, replacement(it, filled, work.Record), filled) {
		t.Error("one that was changed needs no replacement")
	}
}

func TestRun_AppliesAnObjectThatWasOnlyRead(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), foundConfigMap())
	work = withoutMay(work)
	work.observed = func(Item) memberwatch.Observation { return memberwatch.Observation{Version: "7", Reached: "7"} }
	read := WithMode([]Item{configMapItem(t, "new")}, Mode{Method: ReadOnly})
	work.cache.begin(read, "terms", early.Time, time.Hour)
	e.run(t.Context(), work, read)
	e.run(t.Context(), work, read)
	brought := WithMode([]Item{configMapItem(t, "new")}, Mode{Method: Replace})
	work.cache.begin(brought, "terms", early.Time, time.Hour)
	e.run(t.Context(), work, brought)
	if diff := cmp.Diff([]string{"get", "get", "update"}, verbs(e)); diff != "" {
		t.Errorf("asked of the member (-want +got):\n%s", diff)
	}
}

func TestRun_CreateOnlyReadOnlyAndDisown(t *testing.T) {
	owned := func(e *Engine, work task) *unstructured.Unstructured { return foundConfigMap(work.Record) }
	for name, tc := range map[string]struct {
		mode Mode
		live func(*Engine, task) *unstructured.Unstructured
		// The resulting object and the requests to the member.
		data     string
		owners   int
		verbs    []string
		hasField bool
	}{
		"CreateOnly, missing": {
			mode: Mode{Method: CreateOnly}, data: "new", owners: 1, verbs: []string{"get", "create"}, hasField: true},
		"CreateOnly, existing": {
			mode: Mode{Method: CreateOnly}, live: func(*Engine, task) *unstructured.Unstructured { return foundConfigMap() },
			data: "old", owners: 1, verbs: []string{"get", "update"}, hasField: true},
		"CreateOnly, existing and ours": {
			mode: Mode{Method: CreateOnly}, live: owned, data: "old", owners: 1, verbs: []string{"get"}, hasField: true},
		"ReadOnly, missing": {
			mode: Mode{Method: ReadOnly}, verbs: []string{"get"}},
		"ReadOnly, existing": {
			mode: Mode{Method: ReadOnly}, live: func(*Engine, task) *unstructured.Unstructured { return foundConfigMap() },
			data: "old", verbs: []string{"get"}},
		"Replace with Disown": {
			mode: Mode{Method: Replace, Disown: true}, live: owned, data: "new", verbs: []string{"get", "update"}},
		"CreateOnly with Disown": {
			mode: Mode{Method: Replace, Disown: true}, data: "new", verbs: []string{"get", "create"}},
		"CreateOnly with Disown, existing": {
			mode: Mode{Method: CreateOnly, Disown: true}, live: owned, data: "old", verbs: []string{"get", "update"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
			if tc.live != nil {
				e, work = engineOn(t, testingclock.NewFakePassiveClock(early.Time), tc.live(e, work))
			}
			mode := tc.mode
			mode.Examine = func(object *unstructured.Unstructured) any { return object.GetName() }
			it := WithMode([]Item{configMapItem(t, "new")}, mode)[0]
			e.member.(*dynamicfake.FakeDynamicClient).PrependReactor("create", "*", withUID(e))
			out := e.run(t.Context(), withoutMay(work), []Item{it})[0]
			if out.Refused != nil || out.Err != nil || out.Owned != tc.hasField {
				t.Errorf("the result is %+v", out)
			}
			if diff := cmp.Diff(tc.verbs, verbs(e)); diff != "" {
				t.Errorf("asked of the member (-want +got):\n%s", diff)
			}
			got, err := e.find(t.Context(), it)
			if err != nil {
				t.Fatal(err)
			}
			if tc.data == "" {
				if got != nil || out.UID != "" || out.Examined != nil {
					t.Errorf("there is %v, and the result is %+v", got, out)
				}
				return
			}
			value, _, _ := unstructured.NestedString(got.Object, "data", "a")
			if value != tc.data || len(got.GetOwnerReferences()) != tc.owners || out.Examined != "a" {
				t.Errorf("the object is %v, and examined is %v", got.Object, out.Examined)
			}
		})
	}
}

func TestCovers_AcceptsAdditionalFields(t *testing.T) {
	for name, tc := range map[string]struct {
		object, manifest any
		want             bool
	}{
		"the same":            {map[string]any{"a": "b"}, map[string]any{"a": "b"}, true},
		"more":                {map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}}, map[string]any{"a": map[string]any{"b": int64(1)}}, true},
		"another value":       {map[string]any{"a": "b"}, map[string]any{"a": "c"}, false},
		"less":                {map[string]any{}, map[string]any{"a": "b"}, false},
		"an empty map":        {map[string]any{}, map[string]any{"a": map[string]any{}}, true},
		"an empty list":       {map[string]any{}, map[string]any{"a": []any{}}, true},
		"more in an item":     {[]any{map[string]any{"a": "b", "c": "d"}}, []any{map[string]any{"a": "b"}}, true},
		"more items":          {[]any{"a", "b"}, []any{"a"}, false},
		"a text for a list":   {"a", []any{"a"}, false},
		"a text for a map":    {"a", map[string]any{"a": "b"}, false},
		"another item's text": {[]any{"a"}, []any{"b"}, false},
	} {
		if got := covers(tc.object, tc.manifest); got != tc.want {
			t.Errorf("%s: covered is %t", name, got)
		}
	}
}

// withoutMay allows every owner.
func withoutMay(work task) task {
	work.Owner = DefaultOwner{}
	return work
}

// withUID sets UIDs on created objects, as API servers do.
func withUID(e *Engine) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		made := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		made.SetUID("made")
		err := e.member.(*dynamicfake.FakeDynamicClient).Tracker().Create(action.GetResource(), made, action.GetNamespace())
		return true, made, err
	}
}
