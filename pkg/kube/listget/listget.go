// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listget reads one object of any kind, as a list of one.
//
// Any object on the hub can be placed, looked up or reported on, so the gateway reads kinds that
// are not known in advance. Permission to get everything would allow more than that: a GET of
// nodes/proxy or services/proxy reaches the workloads, and up to Kubernetes 1.34 a GET of pods/exec
// runs commands. No list does. So the gateway has list and watch on everything, and get only on
// what its role names.
package listget

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lister lists objects of one kind, in one namespace or in all. A dynamic.ResourceInterface
// implements it.
type Lister interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// Through lists a kind, in a namespace or in all, with a reader that does not cache.
func Through(reader client.Reader, kind schema.GroupVersionKind, namespace string) Lister {
	return lister{reader, kind, namespace}
}

type lister struct {
	reader    client.Reader
	kind      schema.GroupVersionKind
	namespace string
}

// List implements Lister.
func (l lister) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(l.kind.GroupVersion().WithKind(l.kind.Kind + "List"))
	return list, l.reader.List(ctx, list, &client.ListOptions{Namespace: l.namespace, Raw: &options})
}

// Get returns the object of that name. With a resourceVersion of the object, the result is at least
// that recent, and the API server answers from its cache at once. Without one, the result is
// current, and the API server has to wait, up to a tenth of a second, until its cache has caught
// up. "0" accepts whatever the cache has.
//
// The error is NotFound if there is no such object, a NoResourceMatchError if the hub does not
// serve the kind, and Forbidden if RBAC does not allow listing it.
func Get(ctx context.Context, lister Lister, resource schema.GroupVersionResource, key client.ObjectKey, version string) (*unstructured.Unstructured, error) {
	options := metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
		ResourceVersion: version,
	}
	if version != "" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	list, err := lister.List(ctx, options)
	if apierrors.IsNotFound(err) {
		// A list exists even if it is empty.
		return nil, &meta.NoResourceMatchError{PartialResource: resource}
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s by the name %q: %w", resource.GroupResource(), key, err)
	}
	for i := range list.Items {
		// Some aggregated API servers ignore selectors.
		object := &list.Items[i]
		if of := object.GetNamespace(); object.GetName() == key.Name && (of == "" || of == key.Namespace) {
			return object, nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), key.Name)
}
