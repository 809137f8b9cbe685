// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Filter is what an operator excludes from all placements, in addition to what is never placed. The
// zero value excludes nothing.
type Filter struct {
	skipped, allowed []pattern
	namespaces       map[string]bool
}

// pattern matches the kinds of a group; with a version, only those of that version; with a kind, only
// that kind.
type pattern struct {
	gv   schema.GroupVersion
	kind string
}

func (p pattern) matches(gvk schema.GroupVersionKind) bool {
	return p.gv.Group == gvk.Group && (p.gv.Version == "" || p.gv.Version == gvk.Version) && (p.kind == "" || strings.EqualFold(p.kind, gvk.Kind))
}

// ParseFilter reads lists in the format of KubeFleet's flags. Entries end with a semicolon. API entries
// are group, group/version, or group/version/Kind with further kinds behind commas; kinds of the core
// group are v1/Kind. Commas can separate namespaces, too.
func ParseFilter(skippedAPIs, allowedAPIs, skippedNamespaces string) (Filter, error) {
	if skippedAPIs != "" && allowedAPIs != "" {
		return Filter{}, errors.New("skippedAPIs and allowedAPIs exclude each other")
	}
	skipped, err := parsePatterns(skippedAPIs)
	if err != nil {
		return Filter{}, fmt.Errorf("skippedAPIs: %w", err)
	}
	allowed, err := parsePatterns(allowedAPIs)
	if err != nil {
		return Filter{}, fmt.Errorf("allowedAPIs: %w", err)
	}
	f := Filter{skipped: skipped, allowed: allowed, namespaces: map[string]bool{}}
	for _, name := range strings.FieldsFunc(skippedNamespaces, func(r rune) bool { return r == ';' || r == ',' }) {
		f.namespaces[strings.TrimSpace(name)] = true
	}
	return f, nil
}

func parsePatterns(text string) ([]pattern, error) {
	var all []pattern
	for entry := range strings.SplitSeq(text, ";") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		found, err := parseEntry(entry)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func parseEntry(entry string) ([]pattern, error) {
	names := strings.Split(entry, ",")
	parts := strings.Split(strings.TrimSpace(names[0]), "/")
	if len(parts) <= 2 && parts[0] == "v1" {
		parts = append([]string{""}, parts...)
	}
	first := pattern{gv: schema.GroupVersion{Group: parts[0]}}
	switch {
	case len(parts) > 3, len(parts) < 3 && len(names) > 1:
		return nil, fmt.Errorf("%q is neither a group, nor group/version, nor group/version/Kind,Kind", entry)
	case len(parts) == 3:
		first.kind = parts[2]
		fallthrough
	case len(parts) == 2:
		first.gv.Version = parts[1]
	}
	all := []pattern{first}
	for _, name := range names[1:] {
		// Every kind can repeat its group and version.
		name = strings.TrimSpace(name)
		all = append(all, pattern{gv: first.gv, kind: name[strings.LastIndex(name, "/")+1:]})
	}
	return all, nil
}

// leavesOut reports whether objects of the kind stay on the hub. A filter cannot exclude namespaces and
// envelopes, because placements are built on them.
func (f Filter) leavesOut(gvk schema.GroupVersionKind) bool {
	if gvk.GroupKind() == namespaceKind || envelopes[gvk.GroupKind()] {
		return false
	}
	for _, p := range f.skipped {
		if p.matches(gvk) {
			return true
		}
	}
	for _, p := range f.allowed {
		if p.matches(gvk) {
			return false
		}
	}
	return len(f.allowed) > 0
}
