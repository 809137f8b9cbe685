// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// want is one selector of a placement, with its kind resolved.
type want struct {
	kind Kind
	// namespace is the namespace of a namespaced kind; empty for other kinds.
	namespace string
	// name is the wanted object; if empty, labels decide.
	name   string
	labels labels.Selector
	// contents is true if a selected namespace is placed with its contents.
	contents bool
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

func (w want) isNamespace() bool { return w.kind.GroupKind() == namespaceKind }

// picks reports whether the want selects this object of its kind.
func (w want) picks(object metav1.Object) bool {
	if object.GetNamespace() != w.namespace {
		return false
	}
	return w.picksNamed(object.GetName(), object.GetLabels())
}

func (w want) picksNamed(name string, set map[string]string) bool {
	if w.name != "" {
		return w.name == name
	}
	return w.labels.Matches(labels.Set(set))
}

// concerns reports whether a change of the object can change the want's result. namespaceLabels returns
// the labels of a namespace on the hub.
func (w want) concerns(gvr schema.GroupVersionResource, object metav1.Object, namespaceLabels func(name string) map[string]string) bool {
	if gvr == w.kind.GVR() && w.picks(object) {
		return true
	}
	if !w.contents || !w.isNamespace() || object.GetNamespace() == "" {
		return false
	}
	return w.picksNamed(object.GetNamespace(), namespaceLabels(object.GetNamespace()))
}

// selectorOf reads a label selector; nil selects everything.
func selectorOf(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}
