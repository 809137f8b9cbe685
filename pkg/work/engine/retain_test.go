// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// careful returns an engine whose dialect marks taken-over objects and retains containers.
func careful(t *testing.T, objects ...runtime.Object) (*Engine, task) {
	t.Helper()
	e, work := engineOn(t, testingclock.NewFakePassiveClock(later.Time), objects...)
	e.TakenOverAnnotation, e.DeletePolicyAnnotation, e.RetainedAnnotation = "fleetgate.io/taken-over", "fleetgate.io/delete-policy", "fleetgate.io/retained"
	e.RetainedFromAnnotation = "fleetgate.io/retained-from"
	e.tuning.Removal = 5 * time.Minute
	e.kinds = &servedKinds{current: kindsOfAMember()}
	return e, work
}

func TestTakesOver_MarksWhatNoWorkOwnedBefore(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: "3"}
	marked := configMapOf(us)
	marked.Annotations = map[string]string{"fleetgate.io/taken-over": "true"}
	cases := map[string]struct {
		object *corev1.ConfigMap
		had    types.UID
		want   bool
	}{
		"without owners":                       {configMapOf(), "", true},
		"of an owner that is no work":          {configMapOf(foreign), "", true},
		"another work's":                       {configMapOf(other), "", false},
		"ours":                                 {configMapOf(us), "", false},
		"ours, and marked":                     {marked, "", true},
		"ours, with a removed owner reference": {configMapOf(), "9", false},
		"another object of a name that we had": {configMapOf(), "8", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, work := careful(t)
			work.entries = []Entry{{UID: tc.had}}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if got := e.takesOver(work, &unstructured.Unstructured{Object: content}); got != tc.want {
				t.Errorf("it is taken over: %t", got)
			}
		})
	}
}

func TestRun_MarksATakenOverObjectWithTheWriteThatOwnsIt(t *testing.T) {
	for name, method := range map[string]Method{"merged": Merge, "applied on the server's side": ServerSide} {
		t.Run(name, func(t *testing.T) {
			e, work := careful(t, configMapOf())
			it := configMapItem(t, "1")
			it.Mode.Method = method
			e.run(t.Context(), work, []Item{it}) // the stand-in does not know how to merge
			written := ""
			for _, action := range e.member.(*fake.FakeDynamicClient).Actions() {
				if patch, is := action.(clienttesting.PatchAction); is {
					written += string(patch.GetPatch())
				}
			}
			if !strings.Contains(written, `"fleetgate.io/taken-over":"true"`) || !strings.Contains(written, `"ownerReferences"`) {
				t.Errorf("what is written is %s", written)
			}
		})
	}
}

func TestPlan_DropsOurMarksFromManifests(t *testing.T) {
	e, _ := careful(t)
	items, err := e.plan(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a","annotations":{
		"fleetgate.io/taken-over":"true","fleetgate.io/retained":"x","fleetgate.io/delete-policy":"Delete"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"fleetgate.io/delete-policy": "Delete"}, items[0].object.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestPrune_KeepsTakenOverObjects(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	with := func(created time.Time, annotations map[string]string) *corev1.ConfigMap {
		object := configMapOf(us)
		object.CreationTimestamp = metav1.NewTime(created)
		object.Annotations = annotations
		return object
	}
	marks := map[string]string{"fleetgate.io/taken-over": "true", "kubernetes-fleet.io/spec-hash": "x",
		"kubernetes-fleet.io/last-applied-configuration": "{}", "theirs": "stays"}
	marked := map[string]string{"fleetgate.io/taken-over": "true"}
	cases := map[string]struct {
		object *corev1.ConfigMap
		work   Work
		// left are the annotations of the remaining object; nil if it is deleted.
		left   map[string]string
		owners int
		tells  bool
	}{
		"marked":                           {with(early.Time, marks), Work{}, map[string]string{"theirs": "stays"}, 0, true},
		"marked, and ours to delete":       {with(early.Time, marked), Work{DeletesTakenOver: true}, nil, 0, false},
		"marked, which its author deletes": {with(early.Time, map[string]string{"fleetgate.io/taken-over": "true", "fleetgate.io/delete-policy": "Delete"}), Work{}, nil, 0, false},
		"created, which its author keeps":  {with(early.Time, map[string]string{"fleetgate.io/delete-policy": "Abandon"}), Work{}, map[string]string{"fleetgate.io/delete-policy": "Abandon"}, 0, true},
		"created":                          {with(early.Time, nil), Work{}, nil, 0, false},
		"older than an old record":         {with(early.Time, nil), Work{UnmarkedBefore: later.Time}, map[string]string{}, 0, true},
		"younger than an old record":       {with(later.Time, nil), Work{UnmarkedBefore: early.Time}, nil, 0, false},
		"marked, with an heir":             {with(early.Time, marked), Work{Owner: testOwner{next: &other}}, marked, 1, false},
		"older than an old record, with an heir": {with(early.Time, nil),
			Work{UnmarkedBefore: later.Time, Owner: testOwner{next: &other}}, marked, 1, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := careful(t, tc.object)
			tc.work.Record = us
			if tc.work.Owner == nil {
				tc.work.Owner = DefaultOwner{}
			}
			got, err := e.prune(t.Context(), tc.work, []Entry{{Ref: id("a"), UID: "9"}}, metav1.DeletePropagationForeground)
			if err != nil || !got.IsOver() || !got.MayEndRecord() {
				t.Fatalf("it is over: %t, %v", got.IsOver(), err)
			}
			if tells := len(got.Retained()) == 1; tells != tc.tells {
				t.Errorf("it tells of %v", got.Retained())
			}
			live := leftOf(t, e)
			if (live == nil) != (tc.left == nil) {
				t.Fatalf("left is %v", live)
			}
			if live == nil {
				return
			}
			left := live.GetAnnotations()
			if left == nil {
				left = map[string]string{}
			}
			if diff := cmp.Diff(tc.left, left); diff != "" || len(live.GetOwnerReferences()) != tc.owners {
				t.Errorf("owners %v, annotations (-want +got):\n%s", live.GetOwnerReferences(), diff)
			}
		})
	}
}

func TestRemoval_DoesNotEndTheRecordWhileSomethingIsNotReleased(t *testing.T) {
	e, _ := careful(t, configMapOf(recordRef("us", "1")))
	member := e.member.(*fake.FakeDynamicClient)
	member.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbiddenToRead() })
	got, err := e.prune(t.Context(), Work{Record: recordRef("us", "1"), Owner: DefaultOwner{}}, []Entry{{Ref: id("a")}}, metav1.DeletePropagationForeground)
	if err != nil || got.MayEndRecord() || got.IsOver() {
		t.Errorf("the record may be deleted, and what it owns with it: %v", err)
	}
}

// stock is a fake inventory.
type stock struct {
	objects    map[string][]metav1.PartialObjectMetadata // by resource
	unanswered []string
	forbidden  string
}

func (s stock) namespaced(context.Context) ([]resourceKind, []string, error) {
	var all []resourceKind
	for _, resource := range []string{"persistentvolumeclaims", "configmaps", "serviceaccounts", "secrets"} {
		kind := map[string]string{"persistentvolumeclaims": "PersistentVolumeClaim", "configmaps": "ConfigMap", "serviceaccounts": "ServiceAccount", "secrets": "Secret"}
		all = append(all, resourceKind{schema.GroupVersionResource{Version: "v1", Resource: resource}, kind[resource]})
	}
	return all, s.unanswered, nil
}

func (s stock) list(_ context.Context, resource schema.GroupVersionResource, _, _ string) (*metav1.PartialObjectMetadataList, error) {
	if resource.Resource == s.forbidden {
		return nil, apierrors.NewForbidden(resource.GroupResource(), "", nil)
	}
	return &metav1.PartialObjectMetadataList{Items: s.objects[resource.Resource]}, nil
}

func TestPrune_KeepsANamespaceWithObjectsOfOthers(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	in := func(resource string, object metav1.ObjectMeta) stock {
		object.Namespace = "ns"
		return stock{objects: map[string][]metav1.PartialObjectMetadata{resource: {{ObjectMeta: object}}}}
	}
	by := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: manager}}
	}
	ending, long := later.Add(-time.Second), later.Add(-time.Hour)
	deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "7"}
	outside := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "n", UID: "8"}
	cases := map[string]struct {
		hasField stock
		work     Work
		want     string // goes, stays, kept or waits
	}{
		"empty":                                {stock{}, Work{Ending: ending}, "goes"},
		"a local object":                       {in("configmaps", metav1.ObjectMeta{Name: "local"}), Work{Ending: ending}, "stays"},
		"a local object, of a work that stays": {in("configmaps", metav1.ObjectMeta{Name: "local"}), Work{}, "kept"},
		"an object that Kubernetes creates in each namespace": {in("configmaps", metav1.ObjectMeta{Name: "kube-root-ca.crt"}), Work{Ending: ending}, "goes"},
		"the default account": {in("serviceaccounts", metav1.ObjectMeta{Name: "default"}), Work{Ending: ending}, "goes"},
		"another account":     {in("serviceaccounts", metav1.ObjectMeta{Name: "robot"}), Work{Ending: ending}, "stays"},
		"a claim without data that a StatefulSet's controller made": {in("persistentvolumeclaims", metav1.ObjectMeta{Name: "data-0", ManagedFields: by("kube-controller-manager")}), Work{Ending: ending}, "goes"},
		"a claim with data":                     {in("persistentvolumeclaims", metav1.ObjectMeta{Name: "data-0", ManagedFields: by("kube-controller-manager"), Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}), Work{Ending: ending}, "stays"},
		"a terminating object":                  {in("configmaps", metav1.ObjectMeta{Name: "x", DeletionTimestamp: &early}), Work{Ending: ending}, "goes"},
		"ours":                                  {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{us}}), Work{Ending: ending}, "goes"},
		"ours, and still in the work":           {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{us}}), Work{}, "kept"},
		"of an owner in the namespace":          {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{deployment}}), Work{Ending: ending}, "goes"},
		"of an owner elsewhere, for a moment":   {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{outside}}), Work{Ending: ending}, "waits"},
		"of an owner elsewhere":                 {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{outside}}), Work{Ending: long}, "stays"},
		"of another work":                       {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{other}}), Work{Ending: long, Owner: testOwner{claim: Wanted}}, "stays"},
		"of another work, for a moment":         {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{other}}), Work{Ending: ending, Owner: testOwner{claim: Wanted}}, "waits"},
		"of another work that is being deleted": {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{other}}), Work{Ending: ending, Owner: testOwner{claim: Going}}, "waits"},
		"of another work whose deletion hangs":  {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{other}}), Work{Ending: long, Owner: testOwner{claim: Going}}, "goes"},
		"in no work any more":                   {in("configmaps", metav1.ObjectMeta{Name: "x", OwnerReferences: []metav1.OwnerReference{other}}), Work{Ending: ending, Owner: testOwner{claim: Unwanted}}, "goes"},
		"kinds without the right to list":       {stock{forbidden: "secrets"}, Work{Ending: ending}, "stays"},
		"a group that does not answer":          {stock{unanswered: []string{"down.example.com"}}, Work{Ending: ending}, "waits"},
		"a group that never answers":            {stock{unanswered: []string{"down.example.com"}}, Work{Ending: long}, "stays"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := careful(t, &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
				ObjectMeta: metav1.ObjectMeta{Name: "ns", UID: "5", OwnerReferences: []metav1.OwnerReference{us}}})
			e.stored, tc.work.Record = tc.hasField, us
			if tc.work.Owner == nil {
				tc.work.Owner = DefaultOwner{}
			}
			entry := Entry{Ref: manifest.Ref{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: "ns"}, UID: "5"}
			got, err := e.prune(t.Context(), tc.work, []Entry{entry}, metav1.DeletePropagationForeground)
			if err != nil {
				t.Fatal(err)
			}
			live, err := e.member.(*fake.FakeDynamicClient).Tracker().Get(entry.GroupVersionResource(), "", "ns")
			is := "goes"
			switch {
			case err == nil && len(live.(metav1.Object).GetOwnerReferences()) == 0:
				is = "stays"
			case err == nil && got.Waits():
				is = "waits"
			case err == nil:
				is = "kept"
			}
			if is != tc.want {
				t.Errorf("it %s: %v %q", is, got.Retained(), got.Describe())
			}
			if (is == "kept" || is == "waits") == got.MayEndRecord() {
				t.Error("the member's garbage collector gets what is to stay")
			}
			if is == "stays" && !strings.Contains(live.(metav1.Object).GetAnnotations()["fleetgate.io/retained"], "contains") {
				t.Errorf("it does not say what keeps it: %v", live.(metav1.Object).GetAnnotations())
			}
		})
	}
}

// leftOf returns ConfigMap ns/a of the member; nil if it is deleted.
func leftOf(t *testing.T, e *Engine) metav1.Object {
	t.Helper()
	left, err := e.member.(*fake.FakeDynamicClient).Tracker().Get(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ns", "a")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return left.(metav1.Object)
}

// An operator and its custom resources were deleted together, and their finalizers remained.
func TestPrune_WaitsForCustomResourcesBeforeItDeletesTheirControllers(t *testing.T) {
	us := recordRef("us", "1")
	slice := func(deleted time.Time, finalizers ...string) *discoveryv1.EndpointSlice {
		object := &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "8", OwnerReferences: []metav1.OwnerReference{us}, Finalizers: finalizers}}
		if !deleted.IsZero() {
			object.DeletionTimestamp = &metav1.Time{Time: deleted}
		}
		return object
	}
	custom := manifest.Ref{Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice", Resource: "endpointslices", Namespace: "ns", Name: "b"}
	cases := map[string]struct {
		custom *discoveryv1.EndpointSlice
		waits  bool
	}{
		"it is deleted immediately":              {slice(time.Time{}), false},
		"it waits for a finalizer":               {slice(later.Add(-time.Minute), "example.com/held"), true},
		"it has waited for a finalizer too long": {slice(later.Add(-time.Hour), "example.com/held"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, _ := careful(t, configMapOf(us), tc.custom)
			got, err := e.prune(t.Context(), Work{Record: us, Owner: DefaultOwner{}}, []Entry{{Ref: id("a")}, {Ref: custom}}, metav1.DeletePropagationForeground)
			if err != nil {
				t.Fatal(err)
			}
			if stays := leftOf(t, e) != nil; stays != tc.waits || got.Waits() != tc.waits || got.MayEndRecord() == tc.waits {
				t.Errorf("the rest stays: %t; it waits: %t; the record may go: %t", stays, got.Waits(), got.MayEndRecord())
			}
			if tc.waits && !strings.Contains(got.Describe(), `EndpointSlice.discovery.k8s.io ns/b waits for finalizers ["example.com/held"]`) {
				t.Errorf("it says %q", got.Describe())
			}
			if len(tc.custom.Finalizers) > 0 && !strings.Contains(got.Describe(), "kubectl patch endpointslice.v1.discovery.k8s.io b -n ns --type=merge") {
				t.Errorf("it does not say what to do: %q", got.Describe())
			}
		})
	}
}
