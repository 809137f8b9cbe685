// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Key names an object for as long as it lives, in whichever version a manifest
// writes it and wherever it stands in a Work.
type Key struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// String is for messages: "Deployment.apps web/frontend".
func (k Key) String() string {
	kind := schema.GroupKind{Group: k.Group, Kind: k.Kind}.String()
	if k.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, k.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, k.Namespace, k.Name)
}

// KeyOf is the object that id names.
func KeyOf(id placementv1beta1.WorkResourceIdentifier) Key {
	return Key{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// Identify names the object of the manifest at place ordinal in the words of a
// Work's status. The object is nil when the manifest could not be decoded,
// resource is empty when the member does not know the kind.
func Identify(ordinal int, object *unstructured.Unstructured, resource string) placementv1beta1.WorkResourceIdentifier {
	if object == nil {
		return placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal}
	}
	kind := object.GroupVersionKind()
	return placementv1beta1.WorkResourceIdentifier{
		Ordinal:   ordinal,
		Group:     kind.Group,
		Version:   kind.Version,
		Kind:      kind.Kind,
		Resource:  resource,
		Namespace: object.GetNamespace(),
		Name:      object.GetName(),
	}
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
