// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func namespacesOf(member dynamic.Interface) dynamic.ResourceInterface {
	return member.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
}

func TestRefuseNamespace(t *testing.T) {
	existing := &unstructured.Unstructured{}
	existing.SetAPIVersion("v1")
	existing.SetKind("Namespace")
	existing.SetName("cert-manager")
	pod, namespace := manifest.Ref{Kind: "Pod", Namespace: "cert-manager", Name: "p"}, manifest.Ref{Kind: "Namespace", Name: "cert-manager"}
	for name, tc := range map[string]struct {
		ref    manifest.Ref
		mode   Method
		family testFamily
		denied bool
	}{
		"an object in it":                {pod, Merge, "closed", true},
		"an object in it, applied":       {pod, ServerSide, "closed", true},
		"an object in it, created only":  {pod, CreateOnly, "closed", true},
		"an object in it, compared":      {pod, Compare, "closed", false},
		"an object in it, read":          {pod, ReadOnly, "closed", false},
		"the namespace":                  {namespace, Merge, "closed", true},
		"a namespace that is not there":  {manifest.Ref{Kind: "Namespace", Name: "new"}, Merge, "closed", false},
		"an object of the whole cluster": {manifest.Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cert-manager"}, Merge, "closed", false},
		"another group's Namespace":      {manifest.Ref{Group: "example.org", Kind: "Namespace", Name: "cert-manager"}, Merge, "closed", false},
		"an object in one that is open":  {pod, Merge, "", false},
	} {
		e := &Engine{namespaces: namespacesOf(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), existing)), family: tc.family}
		out := e.refuseNamespace(t.Context(), Item{Ref: tc.ref, Mode: Mode{Method: tc.mode}})
		if (out != nil) != tc.denied || tc.denied && (!out.Owned || out.Refused.Reason != Kept || out.Refused.Message != "closed") {
			t.Errorf("%s: %+v, want a refusal: %t", name, out, tc.denied)
		}
	}
}

func TestRefuseNamespace_AllowsAllIfNoneIsReserved(t *testing.T) {
	e := &Engine{family: testFamily("closed")}
	if out := e.refuseNamespace(t.Context(), Item{Ref: manifest.Ref{Kind: "Pod", Namespace: "shop", Name: "p"}, Mode: Mode{Method: Merge}}); out != nil {
		t.Errorf("got %+v", out)
	}
}

func TestRefuseNamespace_FailsIfItCannotBeRead(t *testing.T) {
	member := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	member.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", nil)
	})
	e := &Engine{namespaces: namespacesOf(member), family: testFamily("closed")}
	out := e.refuseNamespace(t.Context(), Item{Ref: manifest.Ref{Kind: "Pod", Namespace: "shop", Name: "p"}, Mode: Mode{Method: Merge}})
	if out == nil || out.Err == nil || !out.Owned {
		t.Errorf("got %+v, want an error", out)
	}
}
