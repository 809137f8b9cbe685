// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Everything is the entry of a Bound that covers all resources of its scope.
const Everything = "*"

// Bound limits what a placement can select to what its author is allowed to deliver. It is stored on
// the placement, in placementv1beta1.AuthorMayAnnotation. A nil Bound covers everything.
type Bound struct {
	// Author is the user whose rights were checked, for people who read the placement.
	Author string `json:"author"`
	// May has, by namespace and sorted, what the author is allowed to deliver: Everything, a resource
	// with its group behind a dot ("deployments.apps"), or one object of it ("secrets/token"). The
	// namespace "" is for cluster-scoped resources, and for those of all namespaces.
	May map[string][]string `json:"may"`
}

// Add adds a resource; without a name, all objects of it.
func (b *Bound) Add(namespace string, resource schema.GroupResource, name string) {
	b.add(namespace, entryOf(resource, name))
}

// AddAll adds all resources of a namespace.
func (b *Bound) AddAll(namespace string) { b.add(namespace, Everything) }

func (b *Bound) add(namespace, entry string) {
	if b.May == nil {
		b.May = map[string][]string{}
	}
	entries := b.May[namespace]
	if at, there := slices.BinarySearch(entries, entry); !there {
		b.May[namespace] = slices.Insert(entries, at, entry)
	}
}

func entryOf(resource schema.GroupResource, name string) string {
	if name == "" {
		return resource.String()
	}
	return resource.String() + "/" + name
}

// Covers reports whether an object can be selected. The namespace is empty for cluster-scoped
// resources.
func (b *Bound) Covers(resource schema.GroupResource, namespace, name string) bool {
	if b == nil {
		return true
	}
	for _, scope := range []string{"", namespace} {
		for _, entry := range []string{Everything, entryOf(resource, ""), entryOf(resource, name)} {
			if _, there := slices.BinarySearch(b.May[scope], entry); there {
				return true
			}
		}
	}
	return false
}

// String is the value of the annotation: equal bounds have equal texts.
func (b *Bound) String() string {
	text, err := json.Marshal(b)
	if err != nil {
		return "" // Strings and lists of strings can always be encoded.
	}
	return string(text)
}

// ParseBound reads an annotation. An unreadable one covers nothing.
func ParseBound(text string) *Bound {
	b := &Bound{}
	if err := json.Unmarshal([]byte(text), b); err != nil {
		return &Bound{}
	}
	for _, entries := range b.May {
		slices.Sort(entries)
	}
	return b
}
