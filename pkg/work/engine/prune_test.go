// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func TestPrune(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	held := configMapOf(us)
	held.DeletionTimestamp, held.Finalizers = &early, []string{"example.com/held"}
	cases := map[string]struct {
		object  *corev1.ConfigMap // nil: there is none
		refused error             // of reading it
		policy  metav1.DeletionPropagation
		next    *metav1.OwnerReference
		gone    bool
		says    string
		// left are the owners of the remaining object; nil if it is deleted.
		left []string
	}{
		"ours":                               {configMapOf(us), nil, metav1.DeletePropagationForeground, nil, true, "", nil},
		"ours, abandoned":                    {configMapOf(us), nil, metav1.DeletePropagationOrphan, nil, true, "", []string{}},
		"shared":                             {configMapOf(us, other), nil, metav1.DeletePropagationForeground, nil, true, "", []string{"other"}},
		"shared, abandoned":                  {configMapOf(us, other), nil, metav1.DeletePropagationOrphan, nil, true, "", []string{"other"}},
		"of another":                         {configMapOf(other), nil, metav1.DeletePropagationForeground, nil, true, "", []string{"other"}},
		"without owners":                     {configMapOf(), nil, metav1.DeletePropagationForeground, nil, true, "", []string{}},
		"missing":                            {nil, nil, metav1.DeletePropagationForeground, nil, true, "", nil},
		"terminating with a finalizer":       {held, nil, metav1.DeletePropagationForeground, nil, false, "example.com/held", []string{"us"}},
		"not for us to read":                 {configMapOf(us), forbiddenToRead(), metav1.DeletePropagationForeground, nil, false, "verbs: [get]", []string{"us"}},
		"on a member that does not answer":   {configMapOf(us), errors.New("no answer"), metav1.DeletePropagationForeground, nil, false, "", []string{"us"}},
		"left from an AppliedWork before us": {configMapOf(recordRef("us", "0")), nil, metav1.DeletePropagationForeground, nil, true, "", nil},
		"ours, and another's from now on":    {configMapOf(us), nil, metav1.DeletePropagationForeground, &other, true, "", []string{"other"}},
		"ours, abandoned with an heir":       {configMapOf(us), nil, metav1.DeletePropagationOrphan, &other, true, "", []string{}},
		"shared with the heir already":       {configMapOf(us, other), nil, metav1.DeletePropagationForeground, &other, true, "", []string{"other"}},
		"terminating, with an heir":          {held, nil, metav1.DeletePropagationForeground, &other, false, "example.com/held", []string{"us"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.object != nil {
				objects = append(objects, tc.object)
			}
			e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time), objects...)
			member := e.member.(*fake.FakeDynamicClient)
			if tc.refused != nil {
				member.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refused })
			}
			got, err := e.prune(t.Context(), Work{Record: us, Owner: testOwner{next: tc.next}}, []Entry{{Ref: id("a")}}, tc.policy)
			if answered := err == nil; answered != (tc.refused == nil || apierrors.IsForbidden(tc.refused)) {
				t.Fatalf("the error is %v", err)
			}
			if gone := got.gone[manifest.KeyOf(id("a"))]; gone != tc.gone {
				t.Errorf("it is gone: %t", gone)
			}
			if text := got.Describe(); !strings.Contains(text, tc.says) || (tc.says == "") != (text == "") {
				t.Errorf("what is left is described as %q", text)
			}
			if diff := cmp.Diff(tc.left, ownersLeft(t, member)); diff != "" {
				t.Errorf("owners of what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// The member served v1beta1 of the kind when the object was applied.
func TestFindEntry_FindsObjectInOtherVersionOfItsKind(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	entry := Entry{Ref: id("a")}
	entry.Version = "v1beta1"
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", schema.GroupResource{}, "", "404 page not found", 0, true)
	serving := func(version string) kindFinder {
		mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: version}})
		mapper.Add(schema.GroupVersionKind{Version: version, Kind: "ConfigMap"}, apimeta.RESTScopeNamespace)
		return mapper
	}
	for name, tc := range map[string]struct {
		served  kindFinder // nil: discovery fails
		removal []string   // owners after the removal; nil: the object is deleted
		handed  []string   // owners after the object was handed over to the other work
		failed  bool
	}{
		"another version":        {serving("v1"), nil, []string{"other"}, false},
		"no version":             {apimeta.NewDefaultRESTMapper(nil), []string{"us"}, []string{"us"}, false},
		"a kind without storage": {serving("v1beta1"), []string{"us"}, []string{"us"}, false},
		"unknown":                {nil, []string{"us"}, []string{"us"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			member := func() (*Engine, *fake.FakeDynamicClient) {
				e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time), configMapOf(us))
				e.kinds = &servedKinds{fresh: func() (kindFinder, error) {
					if tc.served == nil {
						return nil, errors.New("no answer")
					}
					return tc.served, nil
				}}
				client := e.member.(*fake.FakeDynamicClient)
				client.PrependReactor("get", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
					return action.GetResource().Version == "v1beta1", nil, unserved
				})
				return e, client
			}
			e, client := member()
			removal, err := e.prune(t.Context(), Work{Record: us, Owner: DefaultOwner{}}, []Entry{entry}, metav1.DeletePropagationForeground)
			if (err != nil) != tc.failed || removal.MayEndRecord() == tc.failed {
				t.Errorf("the record may end: %t, the error is %v", removal.MayEndRecord(), err)
			}
			if diff := cmp.Diff(tc.removal, ownersLeft(t, client)); diff != "" {
				t.Errorf("owners after the removal (-want +got):\n%s", diff)
			}
			e, client = member()
			if gone, err := e.handOverEntry(t.Context(), Work{Record: us, Owner: testOwner{next: &other}}, entry); (err != nil) != tc.failed || gone == tc.failed {
				t.Errorf("it is handed over: %t, the error is %v", gone, err)
			}
			if diff := cmp.Diff(tc.handed, ownersLeft(t, client)); diff != "" {
				t.Errorf("owners after handing over (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrune_KeepsObjectsOfOtherOwnersIfTheDialectDoes(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	theirs := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "3"}
	keeper := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Keeper", Name: "keeper", UID: "4"}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		left   []string // owners of what is left; nil: nothing is
	}{
		"only ours":                      {[]metav1.OwnerReference{us}, nil},
		"an owner that does not keep it": {[]metav1.OwnerReference{us, theirs}, nil},
		"an owner that keeps it":         {[]metav1.OwnerReference{us, theirs, keeper}, []string{"theirs", "keeper"}},
		"another work's":                 {[]metav1.OwnerReference{us, theirs, other}, []string{"theirs", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time), configMapOf(tc.owners...))
			e.KeptBy = []schema.GroupKind{{Group: "example.com", Kind: "Keeper"}}
			if _, err := e.prune(t.Context(), Work{Record: us, Owner: DefaultOwner{}}, []Entry{{Ref: id("a")}}, metav1.DeletePropagationBackground); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.left, ownersLeft(t, e.member.(*fake.FakeDynamicClient))); diff != "" {
				t.Errorf("owners of what is left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrune_DeletesKindsWithoutDependentsInTheBackground(t *testing.T) {
	us := recordRef("us", "1")
	held := configMapOf(us)
	held.Finalizers = []string{"example.com/held"}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "9", OwnerReferences: []metav1.OwnerReference{us}}
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta}
	deployments := id("a")
	deployments.Group, deployments.Version, deployments.Kind, deployments.Resource = "apps", "v1", "Deployment", "deployments"
	cases := map[string]struct {
		object runtime.Object
		id     manifest.Ref
		policy metav1.DeletionPropagation
		asked  []string
	}{
		"a ConfigMap is gone immediately":             {configMapOf(us), id("a"), metav1.DeletePropagationBackground, []string{"get", "delete"}},
		"an object with a finalizer is read again":    {held, id("a"), metav1.DeletePropagationBackground, []string{"get", "delete", "get"}},
		"a Deployment is deleted with its dependents": {deployment, deployments, metav1.DeletePropagationForeground, []string{"get", "delete", "get"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time), tc.object)
			if _, err := e.prune(t.Context(), Work{Record: us, Owner: DefaultOwner{}}, []Entry{{Ref: tc.id}}, metav1.DeletePropagationForeground); err != nil {
				t.Fatal(err)
			}
			var asked []string
			for _, action := range e.member.(*fake.FakeDynamicClient).Actions() {
				asked = append(asked, action.GetVerb())
				if deletion, ok := action.(clienttesting.DeleteAction); ok && *deletion.GetDeleteOptions().PropagationPolicy != tc.policy {
					t.Errorf("it is deleted with policy %s", *deletion.GetDeleteOptions().PropagationPolicy)
				}
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func configMapOf(owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "9", OwnerReferences: owners}}
}

func forbiddenToRead() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a",
		errors.New(`User "agent" cannot get resource "configmaps" in API group "" in the namespace "ns"`))
}

// ownersLeft returns the owners of the object on the member.
func ownersLeft(t *testing.T, member *fake.FakeDynamicClient) []string {
	t.Helper()
	left, err := member.Tracker().Get(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ns", "a")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, ref := range left.(metav1.Object).GetOwnerReferences() {
		names = append(names, ref.Name)
	}
	return names
}
