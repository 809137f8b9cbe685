// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status derives the status of placements.
//
// Compute is a function of placement, policy snapshot, resource snapshot and bindings. Conditions have
// a fixed order (see stages). The first condition that is not True ends the list, for a member and for
// the placement. In the placement's conditions, Unknown on any member outweighs False, and False
// outweighs True.
//
// The Reconciler is the controller placement.status. It writes settled states: while the snapshots for
// the placement's current generation do not exist, or the scheduler has not handled them, the status
// stays. It writes at once which members are selected and that a rollout is complete. It gathers
// intermediate states for a second, and longer for many members (spacing.go).
//
// It does not change Scheduled=False with reason InvalidResourceSelectors, which package snapshot sets
// and removes.
package status
