// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// NamespaceLabels reads the labels of a namespace of the hub, and false if there is none of that name.
type NamespaceLabels func(name string) (map[string]string, bool, error)

// Takes reports whether the selectors of a placement take an object of the hub, by itself or as one of
// the contents of a namespace. The namespace is the placement's. It looks at no other rule by which
// objects stay on the hub.
func Takes(namespace string, terms []placementv1beta1.ResourceSelectorTerm, kind schema.GroupKind, object metav1.Object, of NamespaceLabels) (bool, error) {
	if namespace != "" && object.GetNamespace() != namespace {
		return false, nil
	}
	inside := Inside(namespace, terms)
	for _, term := range terms {
		selector, err := selectorOf(term.LabelSelector)
		if err != nil {
			return false, fmt.Errorf("resource selector for %s: labelSelector: %w", term.Kind, err)
		}
		w := want{name: term.Name, labels: selector}
		if object.GetNamespace() != "" {
			w.namespace = inside
		}
		if (schema.GroupKind{Group: term.Group, Kind: term.Kind}) == kind && w.picks(object) {
			return true, nil
		}
		if !CarriesContents(term) || object.GetNamespace() == "" {
			continue
		}
		if taken, err := w.takesContents(object.GetNamespace(), of); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// takesContents reports whether a want of namespaces with their contents picks this one.
func (w want) takesContents(name string, of NamespaceLabels) (bool, error) {
	if w.name != "" {
		return w.name == name, nil
	}
	set, exists, err := of(name)
	return exists && err == nil && w.labels.Matches(labels.Set(set)), err
}
