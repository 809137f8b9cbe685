// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Family decides what holds for all works of an API family.
type Family interface {
	// Reserved returns why no work can apply an object, as a predicate of which the object is the
	// subject, or "".
	Reserved(*unstructured.Unstructured) string
	// ReservedNamespace returns why nothing is written into an existing namespace of the member, or "".
	ReservedNamespace(metav1.Object) string
	// WorkOf returns the work on the hub that a changed object or record on the member belongs to.
	// expected reports whether the change is our own write.
	WorkOf(memberwatch.Event) (work client.Object, expected bool)
}

// Owner decides about the objects of one work. Embed DefaultOwner for the decisions that a family
// does not make.
type Owner interface {
	// MayWrite returns why a manifest must not be written to an object with these owners, or nil.
	MayWrite(ctx context.Context, owners Ownership, manifest *unstructured.Unstructured) *refusal.Refusal
	// NextOwner returns the owner of an object that leaves the work; nil if there is none.
	NextOwner(context.Context, Entry) (*metav1.OwnerReference, error)
	// Claim reports whether a work still wants an object that belongs to the record of another work.
	Claim(ctx context.Context, record string, object manifest.Key) (Claim, error)
	// PreviousRun returns the run of an object that passes to this work from another.
	PreviousRun(context.Context, manifest.Key) (Run, error)
	// Orphans reports whether an object stays on the member, without our owner reference, when it
	// leaves the work.
	Orphans(Entry) bool
	// IsMoving reports whether objects that left the work may be about to join another.
	IsMoving(context.Context) (bool, error)
}

// DefaultOwner lets the work write every object and delete it when it leaves. Objects of other works
// stay.
type DefaultOwner struct{}

var _ Owner = DefaultOwner{}

// MayWrite implements Owner.
func (DefaultOwner) MayWrite(context.Context, Ownership, *unstructured.Unstructured) *refusal.Refusal {
	return nil
}

// NextOwner implements Owner.
func (DefaultOwner) NextOwner(context.Context, Entry) (*metav1.OwnerReference, error) {
	return nil, nil
}

// Claim implements Owner.
func (DefaultOwner) Claim(context.Context, string, manifest.Key) (Claim, error) { return Wanted, nil }

// PreviousRun implements Owner.
func (DefaultOwner) PreviousRun(context.Context, manifest.Key) (Run, error) { return Run{}, nil }

// Orphans implements Owner.
func (DefaultOwner) Orphans(Entry) bool { return false }

// IsMoving implements Owner.
func (DefaultOwner) IsMoving(context.Context) (bool, error) { return false, nil }
