// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const retainedFrom = "fleetgate.io/retained-from"

func TestHoldsData_VolumesAndClaimsOnly(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "PersistentVolumeClaim"}:                                   true,
		{Kind: "PersistentVolume"}:                                        true,
		{Group: "example.org", Kind: "PersistentVolume"}:                  false,
		{Kind: "ConfigMap"}:                                               false,
		{Group: "apps", Kind: "StatefulSet"}:                              false,
		{Kind: "Namespace"}:                                               false, // what is in it does
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: false,
	} {
		if got := holdsData(kind); got != want {
			t.Errorf("%s holds data: %t", kind, got)
		}
	}
}

func TestPrune_RetainsDataThatNobodyAskedToRemove(t *testing.T) {
	us := recordRef("us", "1")
	resource := schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	retains := Work{RetainsData: true, Origin: "ClusterResourcePlacement p"}
	cases := map[string]struct {
		annotations map[string]string
		work        Work
		// left are the annotations of the remaining object; nil if it is deleted.
		left map[string]string
	}{
		"a change of placement": {map[string]string{"theirs": "stays", "kubernetes-fleet.io/spec-hash": "x"}, retains,
			map[string]string{"theirs": "stays", "fleetgate.io/retained": "its placement no longer selects this member", retainedFrom: "ClusterResourcePlacement p"}},
		"a change of placement, which its author answers": {map[string]string{"fleetgate.io/delete-policy": "Delete"}, retains, nil},
		"a change of placement, and it existed before":    {map[string]string{"fleetgate.io/taken-over": "true"}, retains, map[string]string{}},
		"a change that names no placement": {nil, Work{RetainsData: true},
			map[string]string{"fleetgate.io/retained": "its placement no longer selects this member"}},
		"deletion": {nil, Work{Origin: "ClusterResourcePlacement p"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := careful(t, &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "5", Annotations: tc.annotations, OwnerReferences: []metav1.OwnerReference{us}}})
			tc.work.Record, tc.work.Owner = us, DefaultOwner{}
			entry := Entry{Ref: manifest.Ref{Version: "v1", Kind: "PersistentVolumeClaim", Resource: "persistentvolumeclaims", Namespace: "ns", Name: "data"}, UID: "5"}
			got, err := e.prune(t.Context(), tc.work, []Entry{entry}, metav1.DeletePropagationForeground)
			if err != nil {
				t.Fatal(err)
			}
			live, err := e.member.(*fake.FakeDynamicClient).Tracker().Get(resource, "ns", "data")
			if tc.left == nil {
				if !apierrors.IsNotFound(err) || len(got.Retained()) > 0 {
					t.Errorf("it stays: %v", got.Retained())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			object := live.(metav1.Object)
			if diff := cmp.Diff(tc.left, object.GetAnnotations()); diff != "" || len(object.GetOwnerReferences()) > 0 {
				t.Errorf("owners %v, annotations (-want +got):\n%s", object.GetOwnerReferences(), diff)
			}
			if told := got.Retained(); len(told) != 1 || !strings.HasPrefix(told[0].Why, "PersistentVolumeClaim ns/data stays on the member") {
				t.Errorf("it tells of %v", told)
			}
		})
	}
}

// After a wait for objects of other works, the namespace that contained them was deleted.
func TestSpare_DeletesNothingAfterAWaitIfDataIsRetained(t *testing.T) {
	e, _ := careful(t)
	found := contents{going: []string{"PersistentVolumeClaim ns/data, which another Work applied"}}
	long := later.Add(-time.Hour)
	if got := e.keepContainer(Work{Ending: long}, found); got != (stay{}) {
		t.Errorf("it stays: %+v", got)
	}
	if got := e.keepContainer(Work{Ending: long, RetainsData: true}, found); got.retained || !strings.Contains(got.mark, "ns/data") {
		t.Errorf("it is not released: %+v", got)
	}
	if got := e.keepContainer(Work{Ending: long, RetainsData: true}, contents{}); got != (stay{}) {
		t.Errorf("an empty one stays: %+v", got)
	}
}

func TestAttempt_ReadmitsRetainedObjects(t *testing.T) {
	from := func(origin string) map[string]string {
		return map[string]string{"fleetgate.io/retained": "why", retainedFrom: origin}
	}
	cases := map[string]struct {
		object *corev1.ConfigMap
		// returns is set if Ownership.Returns is; marked if the object counts as taken over.
		returns, marked bool
	}{
		"of the same placement":          {annotated(from("p")), true, false},
		"of another placement":           {annotated(from("q")), false, true},
		"that a container was to others": {annotated(map[string]string{"fleetgate.io/retained": "contains x"}), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, work := careful(t, tc.object)
			work.Origin = "p"
			told := false
			work.Owner = testOwner{mayWrite: func(s Ownership) *refusal.Refusal {
				told = told || s.Returns
				return mayAlone(s)
			}}
			if _, done := e.attempt(t.Context(), work, configMapItem(t, "1")); done {
				t.Fatal("no second attempt after readmission")
			}
			left := leftOf(t, e)
			_, marked := left.GetAnnotations()["fleetgate.io/taken-over"]
			if told != tc.returns || marked != tc.marked {
				t.Errorf("it returns: %t, existed before: %t", told, marked)
			}
			if !OwnershipOf(left.GetOwnerReferences(), work.Record).Ours {
				t.Errorf("its owners are %v", left.GetOwnerReferences())
			}
			for _, key := range []string{"fleetgate.io/retained", retainedFrom} {
				if left.GetAnnotations()[key] != "" {
					t.Errorf("annotation %s stays", key)
				}
			}
		})
	}
}

func annotated(annotations map[string]string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	object := configMapOf(owners...)
	object.Annotations = annotations
	return object
}
