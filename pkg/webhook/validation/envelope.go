// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// ChangedEntries returns the keys of what an update adds or changes, sorted: who
// only takes something out, or labels the envelope, needs no right to the rest.
func ChangedEntries(older, newer map[string]placementv1beta1.EnvelopedObject) []string {
	var changed []string
	for _, key := range slices.Sorted(maps.Keys(newer)) {
		before, there := older[key]
		if !there || !sameJSON(before.Raw, newer[key].Raw) {
			changed = append(changed, key)
		}
	}
	return changed
}

func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var left, right any
	if utiljson.Unmarshal(a, &left) != nil || utiljson.Unmarshal(b, &right) != nil {
		return false
	}
	return jsonEqual(left, right)
}

func jsonEqual(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && bytes.Equal(left, right)
}

// ValidateEnvelope returns the errors of an envelope's entries under the given keys, and the
// questions for the author check. The namespace is the envelope's; a ClusterResourceEnvelope has
// none. It returns an error if the lookup of a kind fails.
func ValidateEnvelope(namespace string, data map[string]placementv1beta1.EnvelopedObject, keys []string, resources author.Resources) (field.ErrorList, []author.Question, error) {
	var all field.ErrorList
	var needed []author.Question
	for _, key := range keys {
		path := field.NewPath("data").Key(key)
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data[key].Raw); err != nil || object.GetAPIVersion() == "" {
			all = append(all, field.Invalid(path, object.GetKind(), "is no Kubernetes object with apiVersion and kind"))
			continue
		}
		if object.IsList() {
			all = append(all, field.Invalid(path, object.GetKind(), "is a list: give each object an entry of its own"))
			continue
		}
		if err := utiljson.Unmarshal(data[key].Raw, &metav1.PartialObjectMetadata{}); err != nil { // Nothing of the envelope could be placed.
			all = append(all, field.Invalid(path.Child("metadata"), field.OmitValueType{}, err.Error()))
			continue
		}
		if why := reserved.Why(object); why != "" {
			all = append(all, field.Forbidden(path, why))
			continue
		}
		if object.GetName() == "" && object.GetGenerateName() == "" {
			all = append(all, field.Required(path.Child("metadata", "name"), nameNeeded))
			continue
		}
		scope, questions, err := accessTo(object, path, resources, len(misfits(namespace, object, path)) == 0)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, scope...)
		needed = append(needed, questions...)
	}
	return all, needed, nil
}

// nameNeeded goes for an object without any name, and for one that wants a name made for it.
const nameNeeded = "an object in an envelope has a name of its own; generateName is not enough"

// EnvelopeMisfits returns what will keep the named entries of an envelope in a namespace,
// or in none, from being placed. Nothing of the envelope is placed then, or not that
// object, and the placement says so: whether it is refused before is the hub's choice.
// What ValidateEnvelope finds is not repeated.
func EnvelopeMisfits(namespace string, data map[string]placementv1beta1.EnvelopedObject, keys []string) field.ErrorList {
	var all field.ErrorList
	for _, key := range keys {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(data[key].Raw); err != nil || object.GetAPIVersion() == "" || object.IsList() {
			continue
		}
		all = append(all, misfits(namespace, object, field.NewPath("data").Key(key))...)
	}
	return all
}

// misfits looks at the object alone. Nothing fills in a namespace: what is meant would be
// a guess.
func misfits(namespace string, object *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var all field.ErrorList
	at := path.Child("metadata")
	if object.GetName() == "" && object.GetGenerateName() != "" {
		all = append(all, field.Required(at.Child("name"), nameNeeded))
	}
	switch {
	case namespace == "" && object.GetNamespace() != "":
		all = append(all, field.Forbidden(at.Child("namespace"), "a ClusterResourceEnvelope holds cluster-scoped objects: use a ResourceEnvelope in that namespace"))
	case namespace != "" && object.GetNamespace() != namespace:
		all = append(all, field.Invalid(at.Child("namespace"), object.GetNamespace(), fmt.Sprintf("a ResourceEnvelope holds objects of its own namespace, %q", namespace)))
	}
	return all
}

// accessTo returns the reasons why an object of this kind cannot be in its envelope, or the access
// that its author needs.
func accessTo(object *unstructured.Unstructured, path *field.Path, resources author.Resources, fits bool) (field.ErrorList, []author.Question, error) {
	kind := object.GroupVersionKind()
	resource, served, err := resources(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("looking up %s: %w", kind, err)
	}
	if !served {
		return nil, author.OfEnveloped(path, object, nil), nil
	}
	if fits && resource.Namespaced != (object.GetNamespace() != "") {
		scope := "cluster-scoped"
		if resource.Namespaced {
			scope = "namespaced"
		}
		return field.ErrorList{field.Invalid(path, kind.String(), "is "+scope+" on the hub, so it does not fit into this kind of envelope")}, nil, nil
	}
	return nil, author.OfEnveloped(path, object, &resource), nil
}
