// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package naming derives labels and object names from names that users chose. An object's name may
// have 253 characters, a label's value 63. For a longer name, the label is its beginning and a
// hash. Use [Label] to write such a label, and [LabelValue] to look for it.
package naming

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// hashLength is the number of hexadecimal digits that distinguish long names.
const hashLength = 16

// LabelValue is the label value for a name: the name itself, if it fits.
func LabelValue(name string) string { return Within(name, validation.LabelValueMaxLength) }

// Within shortens a name to at most most characters, which must be more than those of the hash: the
// name itself, or its beginning and a hash of all of it.
func Within(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most-hashLength-1], "-._") + "-" + hash.Of(name)[:hashLength]
}

// Label labels an object with a name. If the name is too long, an annotation with the key of the
// label has the full name.
func Label(object metav1.Object, key, name string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = LabelValue(name)
	object.SetLabels(labels)
	if labels[key] == name {
		return
	}
	annotations := map[string]string{key: name}
	for other, value := range object.GetAnnotations() { // objects may share them
		if other != key {
			annotations[other] = value
		}
	}
	object.SetAnnotations(annotations)
}

// Labelled is the name that an object was labelled with by [Label], empty if it was not. An
// annotation that does not match the label does not count.
func Labelled(object metav1.Object, key string) string {
	value := object.GetLabels()[key]
	if full := object.GetAnnotations()[key]; full != "" && LabelValue(full) == value {
		return full
	}
	return value
}
