// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

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
func ownKinds(items []item, outcomes []outcome) []schema.GroupVersionKind {
	defined := map[schema.GroupKind]bool{}
	for place, it := range items {
		if it.object != nil && outcomes != nil && outcomes[place].refused == nil && outcomes[place].err == nil {
			if kind := definedKind(it.object); kind.Kind != "" {
				defined[kind] = true
			}
		}
	}
	var lacking []schema.GroupVersionKind
	for _, it := range items {
		if it.unknownKind && defined[it.object.GroupVersionKind().GroupKind()] {
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

// awaitKinds waits until objects of the kinds can be written, and reports whether
// they can. A definition is established a moment after it is written, and served
// another moment later.
func (e *engine) awaitKinds(ctx context.Context, kinds kindFinder, lacking []schema.GroupVersionKind) bool {
	err := wait.PollUntilContextTimeout(ctx, kindInterval, kindPatience, true, func(ctx context.Context) (bool, error) {
		for _, kind := range lacking {
			mapping, err := kinds.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
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
