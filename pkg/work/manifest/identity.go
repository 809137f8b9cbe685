// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Key identifies an object, independent of the API version and of the position of its manifest in a
// Work. Two manifests are for the same object if their keys are equal.
type Key struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// Of returns the key of an object.
func Of(object *unstructured.Unstructured) Key {
	kind := object.GroupVersionKind()
	return Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// KeyIn returns the key of a manifest without decoding all of it; false if the manifest is no
// object.
func KeyIn(raw []byte) (Key, bool) {
	var named struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if utiljson.Unmarshal(raw, &named) != nil {
		return Key{}, false
	}
	kind := named.GroupVersionKind()
	return Key{Group: kind.Group, Kind: kind.Kind, Namespace: named.Metadata.Namespace, Name: named.Metadata.Name}, true
}

// KeysIn returns the keys of manifests as strings, for an index of works by object. raw returns the
// JSON of a manifest. Manifests without a key are skipped, since they cannot be applied.
func KeysIn[M any](manifests []M, raw func(M) []byte) []string {
	keys := make([]string, 0, len(manifests))
	for _, m := range manifests {
		if key, is := KeyIn(raw(m)); is {
			keys = append(keys, key.String())
		}
	}
	return keys
}

// String formats the key for messages: "Deployment.apps web/frontend".
func (k Key) String() string {
	kind := schema.GroupKind{Group: k.Group, Kind: k.Kind}.String()
	if k.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, k.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, k.Namespace, k.Name)
}

// Ref identifies the object of a manifest and the position of the manifest. Each family reports it
// in its own type.
type Ref struct {
	// Ordinal is the index of the manifest in its work.
	Ordinal int
	// All further fields are empty if the manifest is unreadable.
	Group, Version, Kind string
	// Resource is the plural name of the kind; empty if the member does not serve the kind.
	Resource string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// KeyOf returns the key of the object.
func KeyOf(ref Ref) Key {
	return Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// GroupKind is the kind of the object.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// GroupVersionResource is the resource of the object.
func (r Ref) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// String formats the object for messages, or the position of the manifest if it is unreadable.
func (r Ref) String() string {
	if r.Kind == "" {
		return fmt.Sprintf("manifest %d", r.Ordinal)
	}
	return KeyOf(r).String()
}

// Identify returns the Ref of the manifest at index ordinal. object is nil if decoding failed;
// resource is empty if the member does not serve the kind.
func Identify(ordinal int, object *unstructured.Unstructured, resource string) Ref {
	if object == nil {
		return Ref{Ordinal: ordinal}
	}
	kind := object.GroupVersionKind()
	return Ref{
		Ordinal:   ordinal,
		Group:     kind.Group,
		Version:   kind.Version,
		Kind:      kind.Kind,
		Resource:  resource,
		Namespace: object.GetNamespace(),
		Name:      object.GetName(),
	}
}

// IdentifyUnnamed returns the Ref of a manifest without a name: only its kind and namespace.
func IdentifyUnnamed(ordinal int, raw []byte) Ref {
	var named struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if utiljson.Unmarshal(raw, &named) != nil {
		return Ref{Ordinal: ordinal}
	}
	kind := named.GroupVersionKind()
	return Ref{Ordinal: ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: named.Metadata.Namespace}
}

// Encode returns the JSON of a manifest. Equal objects give equal text, since encoding/json sorts
// the keys of maps.
func Encode(object *unstructured.Unstructured) ([]byte, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return text, nil
}

// IsSecret reports whether values of this kind must not appear in a status, an event or a log.
func IsSecret(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Secret"}
}
