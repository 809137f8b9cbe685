// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Everything is the entry of a Bound that stands for all resources of its scope.
const Everything = "*"

// Bound is what a placement may select: what its author was found to be allowed. It
// stands on the placement, in placementv1beta1.AuthorMayAnnotation. None (nil) covers
// everything.
type Bound struct {
	// Author is the user who was asked, for whoever reads the placement.
	Author string `json:"author"`
	// May holds, by namespace, what the author may have delivered, sorted: Everything,
	// a resource with its group behind a dot ("deployments.apps"), or one object of it
	// ("secrets/token"). The namespace "" stands for resources of the whole cluster, and
	// for those of all namespaces.
	May map[string][]string `json:"may"`
}

// Add puts a resource into the bound; without a name all of them.
func (b *Bound) Add(namespace string, resource schema.GroupResource, name string) {
	b.add(namespace, entryOf(resource, name))
}

// AddAll puts all resources of a namespace into the bound.
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

// Covers reports whether an object may be selected. The namespace is empty for
// cluster-scoped resources.
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

// String is the bound as an annotation holds it: equal bounds are equal texts.
func (b *Bound) String() string {
	text, err := json.Marshal(b)
	if err != nil {
		return "" // Texts and lists of texts can always be encoded.
	}
	return string(text)
}

// ParseBound reads an annotation. One that cannot be read covers nothing.
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
