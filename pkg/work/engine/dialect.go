// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Dialect is what one API family names and orders differently from the others. What it decides is in
// Family and Owner.
type Dialect struct {
	// Manager is the field manager of the family's writes.
	Manager string
	// HashAnnotation and AppliedAnnotation record on an object which manifest it was written from:
	// the hash and, after a merge, the full text. A family that never merges can leave both empty;
	// the engine then writes neither.
	HashAnnotation, AppliedAnnotation string
	// TakenOverAnnotation marks an object that existed before a work applied it. Such an object
	// stays when it leaves the work. If unset, the engine marks nothing and deletes all objects.
	TakenOverAnnotation string
	// DeletePolicyAnnotation is set by the author of an object to PolicyDelete or PolicyAbandon. It
	// decides whether the object is deleted when it leaves its work. If unset, the family has no
	// such annotation.
	DeletePolicyAnnotation string
	// RetainedAnnotation records why a container stayed on the member, that is, which object in it
	// kept it. If unset, containers are deleted with their contents.
	RetainedAnnotation string
	// RetainedFromAnnotation is set on an object that was retained for its data. Its value is the
	// Origin of the works that can readmit it. If unset, no work can.
	RetainedFromAnnotation string
	// LeaveAnnotation is set by the author of a manifest to the fields that the member decides once
	// the object exists. If unset, the family has no such annotation.
	LeaveAnnotation string
	// HealthAnnotations are set by the author of a manifest to expressions of the object's health. If
	// unset, the family has no such annotations.
	HealthAnnotations availability.HealthAnnotations
	// RecreateAnnotation is set by the author of a manifest to PolicyRecreate, to have the object
	// deleted and re-created if a field is immutable. If unset, the family has no such annotation.
	RecreateAnnotation string
	// Waves is the order of writing and, reversed, of removal.
	Waves manifest.Waves
	// DropsNamespace ignores the namespace of a manifest whose kind is cluster-scoped. If false,
	// such a manifest is refused.
	DropsNamespace bool
	// KeptBy are the kinds of owners, besides the family's own, that keep an object on the member when
	// the work leaves. If nil, every owner does.
	KeptBy   []schema.GroupKind
	Remedies Remedies
}

// Remedies complete messages with the action that the family recommends.
type Remedies struct {
	// Drifted follows "The object was changed on the member (/data/a), ".
	Drifted string
	// Differing follows "The object was on the member before and differs (/data/a), ".
	Differing string
	// Contested follows `Field manager "x" changes /data/a after each correction: `.
	Contested string
	// KeptNone follows "The member accepts objects of this kind and does not store them: ".
	KeptNone string
	// FieldsNotApplied is a sentence after the message about a field that the member dropped or
	// changed.
	FieldsNotApplied string
	// FieldConflict is a sentence after the list of managers that own fields of the manifest.
	FieldConflict string
	// DuplicateKeys is a sentence after the message about a list with two items of one key.
	DuplicateKeys string
	// Immutable is a sentence after the message about an immutable field.
	Immutable string
}

// Method is the method by which a manifest is applied. Engine.attempt or Engine.write has a case for
// each.
type Method string

const (
	// Merge computes a three-way merge in the agent.
	Merge Method = "Merge"
	// ServerSide uses server-side apply.
	ServerSide Method = "ServerSide"
	// Compare writes nothing and reports how the object differs.
	Compare Method = "Compare"
	// Replace makes the object equal to the manifest. Only labels, annotations and owners of others
	// stay.
	Replace Method = "Replace"
	// CreateOnly creates the object if it does not exist. On an existing object it changes only the
	// owners.
	CreateOnly Method = "CreateOnly"
	// ReadOnly writes nothing, and accepts that the object does not exist.
	ReadOnly Method = "ReadOnly"
)

// Mode is how one manifest is applied. The zero value is invalid: Method has to be set.
type Mode struct {
	Method Method
	// Force takes ownership of fields that other managers own. A merge always does.
	Force bool
	// Whole compares all fields, not only those of the manifest.
	Whole bool
	// KeepDrifts never overwrites changes made on the member.
	KeepDrifts bool
	// TakeOverEqual takes over an existing object only if it does not differ from the manifest.
	TakeOverEqual bool
	// Mirror requests the status of the object.
	Mirror bool
	// Manager overrides the field manager of the dialect.
	Manager string
	// Disown leaves the object without our owner reference, so that it stays when the work leaves.
	// If the object has the reference already, it is removed.
	Disown bool
	// OwnTogether repeats the owner references of others in a server-side apply. Without it, works
	// that share one field manager would remove each other's references.
	OwnTogether bool
	// Leave selects the fields that a server-side apply leaves to others. If nil, there are none.
	Leave *Leaving
	// Ignore names fields that the member decides, in addition to those of LeaveAnnotation.
	Ignore []IgnoredFields
	// Examine computes ManifestResult.Examined from the object that was found or written. It must not
	// change the object. It can be nil.
	Examine func(*unstructured.Unstructured) any
}

// IgnoredFields are fields of a manifest that clients on the member can change.
type IgnoredFields struct {
	Pointers []string
	// UntilChanged has the fields written when the manifest changes, in addition to when the object
	// is created. It needs a HashAnnotation.
	UntilChanged bool
}

// basis contains the properties of a Mode that results depend on. A cached result with another
// basis is invalid.
type basis struct {
	by                                                      Method
	manager, leaves                                         string
	force, whole, keepDrifts, takeOverEqual, mirror, disown bool
}

func (w Mode) basis() basis {
	t := basis{by: w.Method, manager: w.Manager, force: w.Force, whole: w.Whole, keepDrifts: w.KeepDrifts,
		takeOverEqual: w.TakeOverEqual, mirror: w.Mirror, disown: w.Disown}
	if w.Leave != nil {
		t.leaves = w.Leave.Hash
	}
	return t
}

// Leaving holds the fields of a manifest that others decide once the object exists.
type Leaving struct {
	// Annotation records on the object the Hash of the manifest that was applied last. While it
	// equals Hash, the engine changes only the owners of the object.
	Annotation, Hash string
	// Lean is the manifest without the fields that are written only at creation.
	Lean *unstructured.Unstructured
}

// of returns the object to apply. live is nil if there is none.
func (l *Leaving) of(manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	wanted := manifest
	if live != nil {
		wanted = l.Lean
	}
	wanted = wanted.DeepCopy()
	wanted.SetAnnotations(joined(wanted.GetAnnotations(), map[string]string{l.Annotation: l.Hash}))
	return wanted
}

// isApplied reports whether live carries the hash of this manifest.
func (l *Leaving) isApplied(live *unstructured.Unstructured) bool {
	return l != nil && live != nil && live.GetAnnotations()[l.Annotation] == l.Hash
}

// owns reports whether the work becomes an owner of the object.
func (w Mode) owns() bool { return w.Method != Compare && w.Method != ReadOnly && !w.Disown }

// examine calls Examine if there is an object.
func (w Mode) examine(object *unstructured.Unstructured) any {
	if w.Examine == nil || object == nil {
		return nil
	}
	return w.Examine(object)
}

// WithMode sets one Mode for all items.
func WithMode(items []Item, mode Mode) []Item {
	for place := range items {
		items[place].Mode = mode
	}
	return items
}

// MapModes replaces the Mode of each item.
func MapModes(items []Item, instead func(Mode) Mode) []Item {
	for place := range items {
		items[place].Mode = instead(items[place].Mode)
	}
	return items
}
