// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ownership describes the owners of an object from the point of view of one owner.
type Ownership struct {
	// Ours is set if that owner is among them.
	Ours bool
	// Works are the names of other owners of the same kind, that is, of the records of other works.
	Works []string
	// Others are owners of other kinds.
	Others []metav1.OwnerReference
	// Returns is set if the object has had no owner since a work of the same origin left it on the
	// member.
	Returns bool
}

// Shared reports whether the object has other owners.
func (s Ownership) Shared() bool { return len(s.Works)+len(s.Others) > 0 }

// isKept reports whether other owners keep the object on the member.
func (d Dialect) isKept(s Ownership) bool {
	return len(s.Works) > 0 || slices.ContainsFunc(s.Others, func(owner metav1.OwnerReference) bool {
		return d.KeptBy == nil || slices.Contains(d.KeptBy, kindOf(owner))
	})
}

// OwnershipOf classifies owner references. A reference with our name and another UID is ours too: it
// belongs to a record that was deleted and re-created.
func OwnershipOf(refs []metav1.OwnerReference, owner metav1.OwnerReference) Ownership {
	var s Ownership
	for _, ref := range refs {
		switch {
		case isSame(ref, owner):
			s.Ours = true
		case isAlike(ref, owner):
			s.Works = append(s.Works, ref.Name)
		default:
			s.Others = append(s.Others, ref)
		}
	}
	return s
}

// isAlike compares the group and kind of two owner references. Versions can differ.
func isAlike(ref, owner metav1.OwnerReference) bool {
	is, err := schema.ParseGroupVersion(ref.APIVersion)
	wanted, wrong := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && wrong == nil && is.Group == wanted.Group && ref.Kind == owner.Kind
}

func isSame(ref, owner metav1.OwnerReference) bool {
	return isAlike(ref, owner) && ref.Name == owner.Name
}

// withoutOwner returns refs without the owner, whatever its UID.
func withoutOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	var kept []metav1.OwnerReference
	for _, ref := range refs {
		if !isSame(ref, owner) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// withOwner returns refs with owner in its previous position, or appended.
func withOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	var result []metav1.OwnerReference
	placed := false
	for _, ref := range refs {
		if !isSame(ref, owner) {
			result = append(result, ref)
			continue
		}
		if !placed {
			result = append(result, owner)
			placed = true
		}
	}
	if !placed {
		result = append(result, owner)
	}
	return result
}
