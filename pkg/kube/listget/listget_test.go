// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package listget

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shelf is what the hub lists, whatever the selector.
type shelf struct {
	objects []unstructured.Unstructured
	err     error
	asked   metav1.ListOptions
}

func (s *shelf) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	s.asked = options
	return &unstructured.UnstructuredList{Items: s.objects}, s.err
}

func thing(namespace, name string) unstructured.Unstructured {
	object := unstructured.Unstructured{}
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func TestGet(t *testing.T) {
	resource := corev1.SchemeGroupVersion.WithResource("things")
	notServed := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
	forbidden := apierrors.NewForbidden(resource.GroupResource(), "", nil)
	for name, tc := range map[string]struct {
		shelf shelf
		key   client.ObjectKey
		is    func(error) bool
	}{
		"is there": {shelf{objects: []unstructured.Unstructured{thing("a", "x")}}, client.ObjectKey{Namespace: "a", Name: "x"}, nil},
		"of the whole cluster, asked for in a namespace": {shelf{objects: []unstructured.Unstructured{thing("", "x")}}, client.ObjectKey{Namespace: "a", Name: "x"}, nil},
		"beside others, of a server without selectors":   {shelf{objects: []unstructured.Unstructured{thing("a", "w"), thing("a", "x")}}, client.ObjectKey{Namespace: "a", Name: "x"}, nil},
		"is not there":                                   {shelf{}, client.ObjectKey{Namespace: "a", Name: "x"}, apierrors.IsNotFound},
		"of that name in another namespace":              {shelf{objects: []unstructured.Unstructured{thing("b", "x")}}, client.ObjectKey{Name: "x"}, apierrors.IsNotFound},
		"another one, of a server that has no selectors": {shelf{objects: []unstructured.Unstructured{thing("a", "w")}}, client.ObjectKey{Namespace: "a", Name: "x"}, apierrors.IsNotFound},
		"of a kind that the hub does not serve":          {shelf{err: notServed}, client.ObjectKey{Name: "x"}, meta.IsNoMatchError},
		"of a kind that must not be listed":              {shelf{err: forbidden}, client.ObjectKey{Name: "x"}, apierrors.IsForbidden},
		"of an unreachable API server, as it is":         {shelf{err: context.DeadlineExceeded}, client.ObjectKey{Name: "x"}, func(err error) bool { return !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) }},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := Get(t.Context(), &tc.shelf, resource, tc.key, "")
			switch {
			case tc.is == nil && (err != nil || object.GetName() != tc.key.Name):
				t.Errorf("got %v, %v", object, err)
			case tc.is != nil && (err == nil || !tc.is(err) || object != nil):
				t.Errorf("got %v, %v", object, err)
			}
			if tc.shelf.asked.FieldSelector != "metadata.name=x" {
				t.Errorf("the hub was asked for %q", tc.shelf.asked.FieldSelector)
			}
		})
	}
}

func TestGet_AcceptsNewerVersions(t *testing.T) {
	s := &shelf{objects: []unstructured.Unstructured{thing("", "x")}}
	if _, err := Get(t.Context(), s, corev1.SchemeGroupVersion.WithResource("things"), client.ObjectKey{Name: "x"}, "7"); err != nil {
		t.Fatal(err)
	}
	if s.asked.ResourceVersion != "7" || s.asked.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		t.Errorf("the hub was asked for %v", s.asked)
	}
}
