// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"fmt"
	"slices"
	"strings"
)

// A Request is what the gateway asks for: the pair that it is about to send in
// impersonation headers.
type Request struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

const (
	maxGroups    = 512
	maxNameBytes = 1024
)

// refusal says why a request is refused, or is empty.
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
	for _, group := range r.Groups {
		if reason := refuseName("group", group); reason != "" {
			return reason
		}
	}
	return ""
}

// refuseName keeps the identities that Kubernetes itself gives meaning to out of
// reach: they would make the hub an administrator of the member.
func refuseName(kind, name string) string {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Sprintf("the name of a %s has 1 to %d bytes", kind, maxNameBytes)
	case strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return fmt.Sprintf("the name of a %s holds a control character", kind)
	case strings.HasPrefix(name, "system:"), name == "kubeadm:cluster-admins", name == "kubernetes-admin":
		return fmt.Sprintf("%s %q is never impersonated on a member: bind an ordinary one there instead", kind, name)
	}
	return ""
}

// remember moves the wanted names to the end of the list, which is its most
// recent end, and cuts the list to the limit from its other end. It reports
// whether a name is new in the list.
func remember(names, wanted []string, limit int) (kept []string, added bool) {
	for _, name := range names {
		if !slices.Contains(wanted, name) {
			kept = append(kept, name)
		}
	}
	for _, name := range wanted {
		added = added || !slices.Contains(names, name)
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	if excess := len(kept) - limit; excess > 0 {
		kept = kept[excess:]
	}
	return kept, added
}
