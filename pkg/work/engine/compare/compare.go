// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const (
	// MaxDetails limits the reported fields of one object.
	MaxDetails = 100
	// maxValue limits the bytes of a reported value.
	maxValue = 1024

	redacted    = "(redacted for security reasons)"
	wholeObject = "(the whole object)"
	rootPath    = "/"
)

// Clusters set labels and annotations of reservedDomains themselves. Manifests set some too, for an Ingress controller
// for example: only a manifest's are compared. Keys of ownDomains are never compared.
var (
	reservedDomains = []string{"kubernetes.io", "k8s.io"}
	ownDomains      = []string{"kubernetes-fleet.io", "fleetgate.io"}
)

// Detail is a field in which two objects differ.
type Detail struct {
	// Path is the JSON pointer of the field.
	Path string
	// ValueInMember is empty if the member does not have the field.
	ValueInMember string
	// ValueInHub is empty if the hub does not have the field.
	ValueInHub string
}

// Missing is the difference for an object that does not exist on the member.
func Missing() []Detail {
	return []Detail{{Path: rootPath, ValueInHub: wholeObject}}
}

// Objects lists the fields in which the member's object differs from the hub's, sorted by path, at
// most MaxDetails. List items are compared by index.
func Objects(hub, member *unstructured.Unstructured) []Detail {
	f := finder{secret: manifest.IsSecret(hub.GroupVersionKind().GroupKind())}
	f.maps("", relevant(hub.Object, hub.Object), relevant(member.Object, hub.Object))
	return f.found
}

// relevant returns the fields of an object to compare. Values are shared with the object.
func relevant(object, hub map[string]any) map[string]any {
	kept := maps.Clone(object)
	delete(kept, "status")
	// Both maps are set even if empty, so that each of their keys is reported separately.
	metadata := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		metadata[field] = relevantKeys(asFields(asFields(object["metadata"])[field]), asFields(asFields(hub["metadata"])[field]))
	}
	kept["metadata"] = metadata
	return kept
}

func relevantKeys(values, hub map[string]any) map[string]any {
	kept := map[string]any{}
	for key, value := range values {
		if _, set := hub[key]; !isConverted(key) && !isOf(key, ownDomains) && (set || !isOf(key, reservedDomains)) {
			kept[key] = value
		}
	}
	return kept
}

func isOf(key string, domains []string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool { return strings.Contains(key, domain+"/") })
}

// finder collects the differences of two objects.
type finder struct {
	secret bool
	found  []Detail
}

func (f *finder) values(path string, hub, member any) {
	switch h := hub.(type) {
	case map[string]any:
		if m, ok := member.(map[string]any); ok {
			f.maps(path, h, m)
			return
		}
	case []any:
		if m, ok := member.([]any); ok {
			f.lists(path, h, m)
			return
		}
	}
	if !manifest.Equal(hub, member) {
		f.add(path, f.text(path, hub), f.text(path, member))
	}
}

func (f *finder) maps(path string, hub, member map[string]any) {
	keys := sets.KeySet(hub).Union(sets.KeySet(member))
	for _, key := range sets.List(keys) {
		if len(f.found) >= MaxDetails {
			return
		}
		f.either(path+"/"+escape(key), hub, member, key)
	}
}

// either compares the values of one key. A null value equals a missing one.
func (f *finder) either(path string, hub, member map[string]any, key string) {
	h, m := hub[key], member[key]
	switch {
	case h == nil && m == nil:
	case m == nil:
		f.add(path, f.text(path, h), "")
	case h == nil:
		f.add(path, "", f.text(path, m))
	default:
		f.values(path, h, m)
	}
}

func (f *finder) lists(path string, hub, member []any) {
	for i := range max(len(hub), len(member)) {
		if len(f.found) >= MaxDetails {
			return
		}
		at := path + "/" + strconv.Itoa(i)
		switch {
		case i >= len(member):
			f.add(at, f.text(at, hub[i]), "")
		case i >= len(hub):
			f.add(at, "", f.text(at, member[i]))
		default:
			f.values(at, hub[i], member[i])
		}
	}
}

func (f *finder) add(path, hub, member string) {
	if len(f.found) < MaxDetails {
		f.found = append(f.found, Detail{Path: path, ValueInHub: hub, ValueInMember: member})
	}
}

// text formats a value. Maps and lists use Go's format, as upstream does, because clients compare
// the text.
func (f *finder) text(path string, value any) string {
	if f.secret && (strings.HasPrefix(path, "/data") || strings.HasPrefix(path, "/stringData")) {
		return redacted
	}
	return untrusted.Truncate(fmt.Sprint(value), maxValue)
}

// escape encodes a key as a segment of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
