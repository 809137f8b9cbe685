// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Request contains the user and groups that the gateway is about to send in impersonation
// headers.
type Request struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

const (
	maxGroups    = 512
	maxNameBytes = 1024
	// maxGroupBytes limits the total size of the groups in a request: the headers of a request to
	// the member have the same limit.
	maxGroupBytes = 128 << 10
)

// refusal returns why a request is refused, or "".
func (r Request) refusal() string {
	switch {
	case r.User == "":
		return "no user was named"
	case len(r.Groups) > maxGroups:
		return fmt.Sprintf("the caller is in %d groups, more than %d cannot be carried", len(r.Groups), maxGroups)
	}
	if reason := refuseName("user", r.User); reason != "" {
		return reason
	}
	total := 0
	for _, group := range r.Groups {
		if reason := refuseName("group", group); reason != "" {
			return reason
		}
		total += len(group)
	}
	if total > maxGroupBytes {
		return fmt.Sprintf("the names of the caller's groups have %d bytes together, more than %d cannot be carried", total, maxGroupBytes)
	}
	return ""
}

// refuseName refuses identities with a built-in meaning in Kubernetes: they would make the hub an
// administrator of the member.
func refuseName(kind, name string) string {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Sprintf("the name of a %s has 1 to %d bytes", kind, maxNameBytes)
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Sprintf("the name of a %s holds a control character", kind)
	case strings.HasPrefix(name, "system:"), name == canary, name == "kubeadm:cluster-admins", name == "kubernetes-admin":
		return fmt.Sprintf("%s %q is never impersonated on a member: bind an ordinary one there instead", kind, name)
	}
	return ""
}

// A bound limits the number of names in a list and their total size.
type bound struct{ names, bytes int }

// remember moves the wanted names to the end of the list, which is the most recent one, and removes
// names from the start until the list is within its bound. It reports whether a name is new.
func remember(names, wanted []string, limit bound) (kept []string, added bool) {
	total := 0
	add := func(name string) {
		kept, total = append(kept, name), total+len(name)
	}
	for _, name := range names {
		if !slices.Contains(wanted, name) {
			add(name)
		}
	}
	for i, name := range wanted {
		added = added || !slices.Contains(names, name)
		if !slices.Contains(wanted[:i], name) {
			add(name)
		}
	}
	for len(kept) > limit.names || total > limit.bytes {
		kept, total = kept[1:], total-len(kept[0])
	}
	return kept, added
}

// byRecency sorts names by their order in recent. Names that recent lacks come first.
func byRecency(names, recent []string) []string {
	rank := make(map[string]int, len(recent))
	for i, name := range recent {
		rank[name] = i + 1
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return sorted
}
