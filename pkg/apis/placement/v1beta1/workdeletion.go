// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DeletePolicyAnnotation is on a Work or binding before its deletion, and sets what happens to the
// applied objects. The hub writes it before it deletes the Work. It can also be on a placed object,
// written by its author, and then sets what happens to the object when it leaves its Work.
const (
	DeletePolicyAnnotation = "fleetgate.io/delete-policy"
	// DeletePolicyAbandon retains the objects on the member, without an owner. With any other
	// value, or if unset, the agent removes them.
	DeletePolicyAbandon = "Abandon"
	// DeletePolicyDelete, on a placed object, deletes it even if it existed before it was placed,
	// or contains objects of others, or holds data. On a Work it deletes data although only the
	// placement has changed: the placement's deleteStrategy says so.
	DeletePolicyDelete = "Delete"
)

// DeletionCauseAnnotation is on a Work, and tells the agent why the hub deletes it. Data stays on the
// member unless a user asked for its removal. Without the annotation the agent assumes
// DeletionPlacementChanged: gateways of previous versions write none. The controller that deletes a binding
// writes it there first, unless the state Unscheduled says the same.
const (
	DeletionCauseAnnotation = "fleetgate.io/deletion-cause"
	// DeletionNone means that the gateway has no cause to delete the Work. If it is deleted, all objects
	// stay on the member.
	DeletionNone = "None"
	// DeletionPlacementChanged means that the placement exists and no longer selects the member.
	DeletionPlacementChanged = "PlacementChanged"
	// DeletionPlacementDeleted means that a user deleted the placement, or its namespace.
	DeletionPlacementDeleted = "PlacementDeleted"
	// DeletionResourceRemoved means that the placement selects the member, and needs fewer Works.
	DeletionResourceRemoved = "ResourceRemoved"
)
