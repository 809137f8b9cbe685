// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	a          = Object{Resource: configMaps, Namespace: "ns", Name: "a"}
	b          = Object{Resource: configMaps, Namespace: "ns", Name: "b"}
	records    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "records"}
	secret     = Object{Resource: secrets, Namespace: "ns", Name: "a"}
)

func TestTouched(t *testing.T) {
	w := New(nil, nil).For(records, nil)
	w.Follow("one", []Object{a, b}, []string{"example.com"})
	w.Follow("two", []Object{a}, nil)
	w.Follow("three", []Object{secret}, []string{"example.com", "other.com"})
	w.Follow("three", []Object{b}, []string{"other.com"}) // replaces
	w.Follow("four", []Object{a}, []string{"example.com"})
	w.Follow("four", nil, nil) // forgets

	cases := map[string]struct {
		resource schema.GroupVersionResource
		key      cache.ObjectName
		want     []Event
	}{
		"an object of two works":          {configMaps, cache.NewObjectName("ns", "a"), []Event{{Work: "one"}, {Work: "two"}}},
		"an object that changed hands":    {configMaps, cache.NewObjectName("ns", "b"), []Event{{Work: "one"}, {Work: "three"}}},
		"an object that was followed":     {secrets, cache.NewObjectName("ns", "a"), nil},
		"a namesake in another namespace": {configMaps, cache.NewObjectName("other", "a"), nil},
		"a record":                        {records, cache.NewObjectName("", "nine"), []Event{{Work: "nine"}}},
		"a new kind":                      {customResourceDefinitions(), cache.NewObjectName("", "widgets.example.com"), []Event{{Work: "one", NewKind: true}}},
		"a new kind of another group":     {customResourceDefinitions(), cache.NewObjectName("", "things.nobody.com"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, w.touched(Object{Resource: tc.resource, Namespace: tc.key.Namespace, Name: tc.key.Name})); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	wanted := map[schema.GroupVersionResource]struct{}{configMaps: {}, records: {}, customResourceDefinitions(): {}}
	if diff := cmp.Diff(wanted, w.wanted()); diff != "" {
		t.Errorf("resources that are watched (-want +got):\n%s", diff)
	}
}

func TestWatcher_WatchesAResourceWhileAnObjectIsFollowed(t *testing.T) {
	w := New(nil, nil).For(records, nil)
	w.Follow("one", []Object{a, secret}, nil)
	w.Follow("two", []Object{a, secret}, nil)
	w.Follow("one", []Object{a}, nil)
	if _, still := w.wanted()[secrets]; !still {
		t.Error("Secrets are not watched, although Work two follows one")
	}
	w.Follow("two", nil, nil)
	if _, still := w.wanted()[secrets]; still {
		t.Error("Secrets are watched without a follower")
	}
	if _, still := w.wanted()[configMaps]; !still {
		t.Error("ConfigMaps are not watched, although Work one follows one")
	}
}

func TestSaw(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	w := New(nil, nil).For(records, func(context.Context, Event) {})
	if observed := w.Observed(a); observed != (Observation{}) || observed.Absent() {
		t.Errorf("of a resource that is not watched it saw %+v", observed)
	}
	w.stores[configMaps] = store
	if observed := w.Observed(a); observed.Absent() {
		t.Errorf("before it has listed anything it says that an object is not there: %+v", observed)
	}
	listed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "5"}}
	if err := store.Replace([]any{listed}, "7"); err != nil {
		t.Fatal(err)
	}
	if observed := w.Observed(a); observed != (Observation{Version: "5", Reached: "7"}) || observed.Absent() {
		t.Errorf("of an object it saw %+v", observed)
	}
	if observed := w.Observed(b); !observed.Absent() {
		t.Errorf("of an object that is not there it saw %+v", observed)
	}
	w.setForbidden(t.Context(), configMaps, true)
	if observed := w.Observed(b); observed != (Observation{}) {
		t.Errorf("of a forbidden resource it saw %+v", observed)
	}
}

func TestDiffer(t *testing.T) {
	metadata := func(version string, generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: version, Generation: generation}}
	}
	cases := map[string]struct {
		resource      schema.GroupVersionResource
		before, after *metav1.PartialObjectMetadata
		want          bool
	}{
		"a relist":                           {configMaps, metadata("1", 0), metadata("1", 0), false},
		"any change of an object":            {configMaps, metadata("1", 0), metadata("2", 0), true},
		"a status written to a record":       {records, metadata("1", 1), metadata("2", 1), false},
		"a record written by another client": {records, metadata("1", 1), metadata("2", 2), true},
	}
	w := New(nil, nil).For(records, nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := w.differ(tc.resource, tc.before, tc.after); got != tc.want {
				t.Errorf("it matters: %t", got)
			}
		})
	}
}

func TestSlim_KeepsOnlyRequiredFields(t *testing.T) {
	full := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "2", Generation: 3,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"large": "text"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	got, err := slim(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "1", ResourceVersion: "2", Generation: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cached object (-want +got):\n%s", diff)
	}
}

func TestWatcher_ServesAllFamiliesWithOneWatch(t *testing.T) {
	w := New(nil, nil)
	ones, others := w.For(records, nil), w.For(b.Resource.GroupVersion().WithResource("others"), nil)
	ones.Follow("work", []Object{a}, []string{"example.com"})
	others.Follow("work", []Object{a, secret}, nil)
	wanted := map[schema.GroupVersionResource]struct{}{configMaps: {}, secrets: {}, records: {}, others.records: {}, customResourceDefinitions(): {}}
	if diff := cmp.Diff(wanted, w.wanted()); diff != "" {
		t.Errorf("resources that are watched (-want +got):\n%s", diff)
	}
	others.Follow("work", nil, nil)
	if touched := ones.touched(a); len(touched) != 1 {
		t.Errorf("a work gets no event after an equally named work of another family was removed: %v", touched)
	}
	if touched := others.touched(a); touched != nil {
		t.Errorf("a removed work gets an event: %v", touched)
	}
	if touched := others.touched(Object{Resource: records, Name: "work"}); touched != nil {
		t.Errorf("a record is taken for another family's: %v", touched)
	}
}
