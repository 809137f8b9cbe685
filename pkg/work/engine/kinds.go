// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// kindPatience is how long a look waits until kinds are served that it has just
	// defined. After that the watch tells.
	kindPatience = 5 * time.Second
	kindInterval = 50 * time.Millisecond
)

// ownKinds lists the kinds that items lack and that CustomResourceDefinitions of
// the same Work define, which are applied.
func ownKinds(items []Item, outcomes []Outcome) []schema.GroupVersionKind {
	defined := map[schema.GroupKind]bool{}
	for place, it := range items {
		if it.object != nil && outcomes != nil && outcomes[place].Refused == nil && outcomes[place].Err == nil {
			if kind := definedKind(it.object); kind.Kind != "" {
				defined[kind] = true
			}
		}
	}
	var lacking []schema.GroupVersionKind
	for _, it := range items {
		if it.UnknownKind && defined[it.object.GroupVersionKind().GroupKind()] {
			lacking = append(lacking, it.object.GroupVersionKind())
		}
	}
	return lacking
}

// definedKind is the kind that an object defines, if it is a
// CustomResourceDefinition.
func definedKind(object *unstructured.Unstructured) schema.GroupKind {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return schema.GroupKind{}
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

// AwaitKinds waits until objects of the kinds can be written that items lack and the
// same work has just defined, and reports whether there are any and they can. A
// definition is established a moment after it is written, and served another moment
// later.
func (e *Engine) AwaitKinds(ctx context.Context, items []Item, outcomes []Outcome) bool {
	lacking := ownKinds(items, outcomes)
	if len(lacking) == 0 {
		return false
	}
	err := wait.PollUntilContextTimeout(ctx, kindInterval, kindPatience, true, func(ctx context.Context) (bool, error) {
		for _, kind := range lacking {
			mapping, err := e.kinds.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				//lint:ignore nilerr It is not there yet: it is asked for again.
				return false, nil
			}
			if _, err := e.member.Resource(mapping.Resource).List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) {
				return false, nil
			}
		}
		return true, nil
	})
	return err == nil
}
