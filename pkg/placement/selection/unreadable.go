// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Unreadable is a kind whose objects on the hub are unknown. Its objects on members must not be treated
// as deleted.
type Unreadable struct {
	// Kind has an empty Kind if it means all kinds of its group and version.
	Kind
	// Fault is the hub's error. It is empty if the gateway has no right to read the kind.
	Fault string
}

// Covers reports whether objects of a kind are unreadable. The version of a single kind does not
// matter, because each version has the same objects.
func (u Unreadable) Covers(group, version, kind string) bool {
	if u.Kind.Kind == "" {
		return u.Group == group && u.Version == version
	}
	return u.Group == group && u.Kind.Kind == kind
}

func (u Unreadable) String() string {
	switch {
	case u.Kind.Kind == "":
		return "all kinds of " + u.GroupVersion().String()
	case u.Resource == "":
		return describe(u.GroupVersionKind)
	}
	return u.GVR().GroupResource().String()
}

func sortUnreadable(all []Unreadable) {
	slices.SortFunc(all, func(a, b Unreadable) int {
		return cmp.Or(strings.Compare(a.GroupVersionKind.String(), b.GroupVersionKind.String()), strings.Compare(a.Fault, b.Fault))
	})
}

// merge concatenates lists of unreadable kinds without duplicates.
func merge(lists ...[]Unreadable) []Unreadable {
	all := slices.Concat(lists...)
	sortUnreadable(all)
	return slices.CompactFunc(all, func(a, b Unreadable) bool { return a.GroupVersionKind == b.GroupVersionKind })
}

// OfTheKind reports whether an error concerns a kind and not the connection to the hub: an unavailable
// conversion webhook or aggregated API server, or a version that the hub has just stopped serving.
// Other kinds can still be read.
func OfTheKind(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	if apierrors.IsTooManyRequests(err) {
		return true // The API server reports a kind whose objects cannot be converted as initializing.
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
