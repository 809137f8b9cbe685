// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Key names an object for as long as it lives, in whichever version a manifest
// writes it and wherever it stands in a Work. Two things that ask whether they mean the
// same object compare their keys.
type Key struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// Of is the object itself.
func Of(object *unstructured.Unstructured) Key {
	kind := object.GroupVersionKind()
	return Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// KeyIn is the object that a manifest is for, read without looking at the rest of it. It is
// false for a manifest that is no object.
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

// KeysIn returns the text of the key of each manifest that has one, as an index of works by
// their objects wants it; raw is what a manifest says. One without a key nobody can apply.
func KeysIn[M any](manifests []M, raw func(M) []byte) []string {
	keys := make([]string, 0, len(manifests))
	for _, m := range manifests {
		if key, is := KeyIn(raw(m)); is {
			keys = append(keys, key.String())
		}
	}
	return keys
}

// String is for messages: "Deployment.apps web/frontend".
func (k Key) String() string {
	kind := schema.GroupKind{Group: k.Group, Kind: k.Kind}.String()
	if k.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, k.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, k.Namespace, k.Name)
}

// Ref names the object of a manifest, and where it stands. Works of all families report
// it under names of their own.
type Ref struct {
	// Ordinal is the manifest's place in its work, from 0.
	Ordinal int
	// What follows is empty if the manifest cannot be read.
	Group, Version, Kind string
	// Resource is the kind's name in URLs. Empty: the member does not know the kind.
	Resource string
	// Namespace is empty for an object that lives in none.
	Namespace, Name string
}

// KeyOf is the object that a reference names.
func KeyOf(ref Ref) Key {
	return Key{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// GroupKind is the kind of the object.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// GroupVersionResource is where objects of the kind are found.
func (r Ref) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// String is for messages: the object, or the manifest's place if it cannot be read.
func (r Ref) String() string {
	if r.Kind == "" {
		return fmt.Sprintf("manifest %d", r.Ordinal)
	}
	return KeyOf(r).String()
}

// Identify names the object of the manifest at place ordinal. The object is nil when the
// manifest could not be decoded, resource is empty when the member does not know the kind.
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

// IdentifyUnnamed names as much as there is of the object of a manifest without a name: its kind and
// namespace.
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

// Encode writes what the manifest asks for as JSON, the same text for the same
// object: encoding/json writes the keys of maps in order.
func Encode(object *unstructured.Unstructured) ([]byte, error) {
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return text, nil
}

// Hash is the sha256 of an encoded manifest, in hexadecimal. The order of keys and
// white space in what was decoded do not count.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// IsSecret reports whether objects of this kind hold values that may not be
// repeated in a status, an event or a log.
func IsSecret(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Secret"}
}
