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

// Unreadable is a kind of which nobody knows what the hub has. What a placement brought of it
// is not known to be gone.
type Unreadable struct {
	// Kind has an empty Kind if it stands for all kinds of its group and version.
	Kind
	// Fault is what the hub answered. It is empty if the gateway has no right to read the kind.
	Fault string
}

// Covers reports whether objects of a kind are among those that could not be read. Of a single
// kind the version makes no difference: the same objects are in each.
func (u Unreadable) Covers(group, version, kind string) bool {
	if u.Kind.Kind == "" {
		return u.Group == group && u.Version == version
	}
	return u.Group == group && u.Kind.Kind == kind
}

// String is the name of the kind as users write it.
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

// merge puts lists of unreadable kinds together, each kind once.
func merge(lists ...[]Unreadable) []Unreadable {
	all := slices.Concat(lists...)
	sortUnreadable(all)
	return slices.CompactFunc(all, func(a, b Unreadable) bool { return a.GroupVersionKind == b.GroupVersionKind })
}

// OfTheKind reports whether an error concerns a kind and not the connection to the hub: a
// conversion webhook that does not answer, an aggregated API server that is down, or a version
// that the hub has just stopped serving. Other kinds can be read all the same.
func OfTheKind(err error) bool {
	if meta.IsNoMatchError(err) {
		return true
	}
	if apierrors.IsTooManyRequests(err) {
		return true // A kind whose objects cannot be converted is said to be initializing.
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
