// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func TestWhatIsHeldTogetherHasAnIDThatWasNotTold(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	made := 0
	h := holds{newID: func() string { made++; return fmt.Sprint(made) }}
	for _, tc := range []struct {
		of    string
		after time.Duration
		letGo []string
		want  string
	}{
		{of: "the first", want: "1"},
		{of: "one of the same restore", after: 10 * time.Second, want: "1"},
		{of: "one after that was let go", after: 20 * time.Second, letGo: []string{"1"}, want: "2"},
		{of: "one a while later", after: 2 * time.Minute, letGo: []string{"1"}, want: "3"},
		{of: "one after the clock was set back", after: -time.Hour, letGo: []string{"1"}, want: "4"},
	} {
		if got := h.idAt(at.Add(tc.after), membership{letGo: tc.letGo}); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.of, got, tc.want)
		}
	}
	if a, b := newHoldID(), newHoldID(); a == b || len(a) != 8 {
		t.Errorf("ids are %q and %q", a, b)
	}
}

func TestHoldsAreToldOnceAndTogether(t *testing.T) {
	var heard []Held
	h := holds{told: func(held Held) { heard = append(heard, held) }}
	back, other := hold{since: "s", id: "2"}, hold{since: "s", id: "1", another: true}
	h.set("b", hold{}, 0)
	h.set("b", back, 2)
	h.set("b", back, 2)
	h.set("a", other, 1)
	h.set("b", hold{}, 0)
	h.set("a", hold{}, 0)
	want := []Held{
		{Works: 1, Objects: 2, Example: "b", LetGo: "2", WentBack: true}, {Works: 2, Objects: 3, Example: "a", LetGo: "1,2", WentBack: true},
		{Works: 1, Objects: 1, Example: "a", LetGo: "1"}, {}}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("what was told (-want +got):\n%s", diff)
	}
}

func TestADeletedWorkTakesNothingWithItThatIsHeld(t *testing.T) {
	b := newBed(t, Options{}, newWork("work", nil, manifestNamespace, manifestA("1")))
	b.look("work")
	b.change("work", func(work *placementv1beta1.Work) {
		work.Spec.Workload.Manifests = raw(manifestNamespace, manifestA("1"), manifestSecret)
	})
	b.look("work")
	b.change("work", func(work *placementv1beta1.Work) { // as a restore and somebody quick leave it
		delete(work.Annotations, placementv1beta1.EpochAnnotation)
		work.Spec.Workload.Manifests = raw(manifestNamespace, manifestA("1"))
	})
	if err := b.hub.Delete(t.Context(), b.work("work")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b.look("work")
	}
	if b.member.objects[pathA] != nil {
		t.Error("what the Work names is still there")
	}
	if b.member.objects[pathSecret] == nil || b.member.objects["/api/v1/namespaces/ns"] == nil {
		t.Error("what is held is gone, or its namespace")
	}
	if err := b.hub.Get(t.Context(), client.ObjectKey{Namespace: heirsNamespace, Name: "work"}, &placementv1beta1.Work{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Work is still there: %v", err)
	}
	if record := b.member.objects[recordPath("work")]; record == nil || record.GetAnnotations()[HeldAnnotation] == "" {
		t.Error("the AppliedWork does not say that something is held")
	}
	if b.reconciler.holds.sum().Objects != 2 {
		t.Errorf("held is %v", b.reconciler.holds.sum())
	}
}

func TestWhatAnObjectTakesWithIt(t *testing.T) {
	entry := func(group, resource, kind, namespace, name string) engine.Entry {
		return engine.Entry{Ref: manifest.Ref{Group: group, Version: "v1", Resource: resource, Kind: kind, Namespace: namespace, Name: name}}
	}
	inside, widget := entry("", "configmaps", "ConfigMap", "ns", "a"), entry("example.com", "widgets", "Widget", "", "w")
	for of, tc := range map[string]struct {
		object, other engine.Entry
		want          bool
	}{
		"a namespace, what is in it":               {entry("", "namespaces", "Namespace", "", "ns"), inside, true},
		"another namespace":                        {entry("", "namespaces", "Namespace", "", "other"), inside, false},
		"a definition, what is of its kind":        {entry("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "", "widgets.example.com"), widget, true},
		"another definition":                       {entry("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "", "gadgets.example.com"), widget, false},
		"an object that has the name of the other": {entry("", "secrets", "Secret", "ns", "a"), inside, false},
	} {
		if got := takes(tc.object, tc.other); got != tc.want {
			t.Errorf("%s: %t", of, got)
		}
	}
}
