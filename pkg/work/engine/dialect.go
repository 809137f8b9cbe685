// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dialect is how one family of works does on members what all do.
type Dialect struct {
	// Manager is the field manager of its writes.
	Manager string
	// HashAnnotation and AppliedAnnotation are where an object says from which manifest it
	// is: by its hash and, after a merge, in full. A family that merges nothing may leave
	// both empty: then nothing is written on objects.
	HashAnnotation, AppliedAnnotation string
	// TakenOverAnnotation marks an object that existed before a work applied it: such an object
	// stays when it leaves the work. If unset, nothing is marked, and all objects are deleted.
	TakenOverAnnotation string
	// DeletePolicyAnnotation is where the author of an object says what happens to it when it
	// leaves its work: PolicyDelete or PolicyAbandon. If unset, nobody can.
	DeletePolicyAnnotation string
	// RetainedAnnotation names what keeps a container of other objects that a work has left on
	// the member. If unset, containers are deleted with all that is in them.
	RetainedAnnotation string
	// RetainedFromAnnotation is on an object that was retained to keep data: the Origin of the
	// works that may have it back. If unset, none may.
	RetainedFromAnnotation string
	// LeaveAnnotation is where the author of a manifest names fields that are left to the member
	// once the object is there. Empty: there is no such annotation.
	LeaveAnnotation string
	// Wave is the place of a resource in the order of writing, up to LastWave: all of one
	// wave is written before any of the next. Removal goes the other way.
	Wave     func(schema.GroupResource) int
	LastWave int
	// Recreates reports whether the author of a manifest lets its object be deleted and
	// made again if it cannot be changed.
	Recreates func(*unstructured.Unstructured) bool
	// Reserved says why an object is never brought, whatever is on the member, or is empty.
	Reserved func(*unstructured.Unstructured) string
	// DropsNamespace has a manifest's namespace not count if its kind lives in none. Without
	// it such a manifest is refused.
	DropsNamespace bool
	// Keeps reports whether an object stays on the member for the sake of an owner of another
	// kind when the work goes. One of the same kind always keeps it. Nil: everyone does.
	Keeps    func(metav1.OwnerReference) bool
	Remedies Remedies
}

// Remedies are what people are told to do where that is a matter of the family. Each
// ends a message.
type Remedies struct {
	// Drifted follows "The object was changed on the member (/data/a), ".
	Drifted string
	// Differing follows "The object was on the member before and differs (/data/a), ".
	Differing string
	// Contested follows `Field manager "x" changes /data/a after each correction: `.
	Contested string
	// KeptNone follows "The member answers objects of this kind and keeps none: ".
	KeptNone string
	// FieldsNotApplied is a sentence after a field that the member does not keep as written.
	FieldsNotApplied string
	// FieldsHeld is a sentence after who else holds fields of the manifest.
	FieldsHeld string
	// Immutable is one after a field that cannot be changed.
	Immutable string
}

// Means is how a manifest is brought. Each is a case in Engine.attempt or Engine.write.
type Means string

const (
	// Merge merges the manifest into the object on our side.
	Merge Means = "Merge"
	// ServerSide has the member's API server do that.
	ServerSide Means = "ServerSide"
	// Compare writes nothing and says how the object differs.
	Compare Means = "Compare"
	// Replace makes the object what the manifest says: what others added to it goes, but
	// for labels, annotations and owners.
	Replace Means = "Replace"
	// CreateOnly makes the object if there is none, and changes nothing of one that is
	// there but who owns it.
	CreateOnly Means = "CreateOnly"
	// ReadOnly writes nothing, and does not mind if there is no object.
	ReadOnly Means = "ReadOnly"
)

// Way is in which way one manifest is brought. The zero value is not usable: By has to
// be set.
type Way struct {
	By Means
	// Force takes fields that other managers hold. A merge always does.
	Force bool
	// Whole compares all fields, instead of those that the manifest has.
	Whole bool
	// KeepDrifts overwrites no change that was made on the member.
	KeepDrifts bool
	// TakeOverEqual takes an object over only if it does not differ.
	TakeOverEqual bool
	// Mirror asks for the status of the object.
	Mirror bool
	// Manager is the field manager, instead of the dialect's. Empty: that one.
	Manager string
	// Disown has the object not be the work's: it stays when the work goes. One that was
	// the work's is given up.
	Disown bool
	// OwnTogether has a server-side apply carry along the owners that others gave the
	// object. Works with one field manager would take them from each other.
	OwnTogether bool
	// Leave is what of the manifest a server-side apply leaves to others. Nil: nothing.
	Leave *Leaving
	// Ignore names fields that the member decides, in addition to those of LeaveAnnotation.
	Ignore []IgnoredFields
	// Examine makes of the object, as it was found or left, what the outcome holds as
	// Examined. It must not change the object. Nil: nothing.
	Examine func(*unstructured.Unstructured) any
}

// IgnoredFields are fields of a manifest that clients on the member can change.
type IgnoredFields struct {
	Pointers []string
	// UntilChanged has the fields written when the manifest changes, in addition to when the object
	// is created. It needs a HashAnnotation.
	UntilChanged bool
}

// basis is what of a way outcomes depend on: one that was made on another does not count.
type basis struct {
	by                                                      Means
	manager, leaves                                         string
	force, whole, keepDrifts, takeOverEqual, mirror, disown bool
}

func (w Way) basis() basis {
	t := basis{by: w.By, manager: w.Manager, force: w.Force, whole: w.Whole, keepDrifts: w.KeepDrifts,
		takeOverEqual: w.TakeOverEqual, mirror: w.Mirror, disown: w.Disown}
	if w.Leave != nil {
		t.leaves = w.Leave.Hash
	}
	return t
}

// Leaving is what of a manifest is left to others once the object is there.
type Leaving struct {
	// Annotation is where the object says, by its Hash, which manifest was applied last. As
	// long as it is this one only the owners of the object are seen to.
	Annotation, Hash string
	// Lean is the manifest without the fields that are only written when the object is made.
	Lean *unstructured.Unstructured
}

// of is what is applied: to live, or instead of nothing.
func (l *Leaving) of(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := manifest
	if live != nil {
		wanted = l.Lean
	}
	wanted = wanted.DeepCopy()
	wanted.SetAnnotations(joined(wanted.GetAnnotations(), map[string]string{l.Annotation: l.Hash}))
	return wanted
}

// isApplied reports whether live says that the manifest was applied.
func (l *Leaving) isApplied(live *unstructured.Unstructured) bool {
	return l != nil && live != nil && live.GetAnnotations()[l.Annotation] == l.Hash
}

// owns reports whether what is brought so becomes the work's.
func (w Way) owns() bool { return w.By != Compare && w.By != ReadOnly && !w.Disown }

// examine is what of the object is looked into.
func (w Way) examine(object *unstructured.Unstructured) any {
	if w.Examine == nil || object == nil {
		return nil
	}
	return w.Examine(object)
}

// InWay has all items brought in one way.
func InWay(items []Item, way Way) []Item {
	for place := range items {
		items[place].Way = way
	}
	return items
}

// InWays has each item brought in another way than it was to be.
func InWays(items []Item, instead func(Way) Way) []Item {
	for place := range items {
		items[place].Way = instead(items[place].Way)
	}
	return items
}

// Standing is who owns an object, seen by one owner.
type Standing struct {
	// Ours is set if the owner is one of them.
	Ours bool
	// Works are the names of other owners of the same kind: records of other works.
	Works []string
	// Others are owners of other kinds.
	Others []metav1.OwnerReference
	// Returns is set if the object has no owner since a work of the same origin left it on the
	// member.
	Returns bool
}

// Shared reports whether anybody else owns the object.
func (s Standing) Shared() bool { return len(s.Works)+len(s.Others) > 0 }

// isKept reports whether an object stays for the sake of its other owners.
func (d Dialect) isKept(s Standing) bool {
	return len(s.Works) > 0 || len(s.Others) > 0 && d.Keeps == nil || slices.ContainsFunc(s.Others, d.Keeps)
}

// StandingOf sorts owner references. One with our name and another UID is ours
// too: it is left from a record that was deleted and made again.
func StandingOf(refs []metav1.OwnerReference, owner metav1.OwnerReference) Standing {
	var s Standing
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

// isAlike recognizes the kind of an owner in whichever version it was written.
func isAlike(ref, owner metav1.OwnerReference) bool {
	is, err := schema.ParseGroupVersion(ref.APIVersion)
	wanted, wrong := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && wrong == nil && is.Group == wanted.Group && ref.Kind == owner.Kind
}

func isSame(ref, owner metav1.OwnerReference) bool {
	return isAlike(ref, owner) && ref.Name == owner.Name
}

// withoutOwner is refs without owner in any generation.
func withoutOwner(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	var kept []metav1.OwnerReference
	for _, ref := range refs {
		if !isSame(ref, owner) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// withOwner is refs with owner in its place, or added at the end.
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
