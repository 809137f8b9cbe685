// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func refusesAll(metav1.Object) string { return "closed" }

func TestRefuseNamespace(t *testing.T) {
	existing := &unstructured.Unstructured{}
	existing.SetAPIVersion("v1")
	existing.SetKind("Namespace")
	existing.SetName("cert-manager")
	pod, namespace := manifest.Ref{Kind: "Pod", Namespace: "cert-manager", Name: "p"}, manifest.Ref{Kind: "Namespace", Name: "cert-manager"}
	for name, tc := range map[string]struct {
		ref     manifest.Ref
		way     Means
		refuses func(metav1.Object) string
		denied  bool
	}{
		"an object in it":                  {pod, Merge, refusesAll, true},
		"an object in it, applied":         {pod, ServerSide, refusesAll, true},
		"an object in it, created only":    {pod, CreateOnly, refusesAll, true},
		"an object in it, compared":        {pod, Compare, refusesAll, false},
		"an object in it, read":            {pod, ReadOnly, refusesAll, false},
		"the namespace":                    {namespace, Merge, refusesAll, true},
		"a namespace that is not there":    {manifest.Ref{Kind: "Namespace", Name: "new"}, Merge, refusesAll, false},
		"an object of the whole cluster":   {manifest.Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cert-manager"}, Merge, refusesAll, false},
		"another group's Namespace":        {manifest.Ref{Group: "example.org", Kind: "Namespace", Name: "cert-manager"}, Merge, refusesAll, false},
		"an object in one that is open":    {pod, Merge, func(metav1.Object) string { return "" }, false},
		"an object in it, without a guard": {pod, Merge, nil, false},
	} {
		e := &Engine{guard: guardOf(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), existing), tc.refuses)}
		out := e.refuseNamespace(t.Context(), Item{Ref: tc.ref, Way: Way{By: tc.way}})
		if (out != nil) != tc.denied || tc.denied && (out.Refused.Reason != Kept || out.Refused.Message != "closed") {
			t.Errorf("%s: %+v, want a refusal: %t", name, out, tc.denied)
		}
	}
}

func TestRefuseNamespace_FailsIfItCannotBeRead(t *testing.T) {
	member := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	member.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", nil)
	})
	e := &Engine{guard: guardOf(member, refusesAll)}
	out := e.refuseNamespace(t.Context(), Item{Ref: manifest.Ref{Kind: "Pod", Namespace: "shop", Name: "p"}, Way: Way{By: Merge}})
	if out == nil || out.Err == nil || !out.Holds {
		t.Errorf("got %+v, want an error", out)
	}
}
