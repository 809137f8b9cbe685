// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status tells what became of a placement.
//
// Compute is a function of what is there: placement, policy snapshot, resource
// snapshot and bindings in, status out. Conditions come in a fixed order (see
// stages); one that is not True ends the list, for a member and for the
// placement, where Unknown on any member outweighs False, and False True.
//
// The Reconciler is the controller placement.status around it. It writes when
// something settled, not on the way: while the snapshots for the placement's
// present generation are not made, or the scheduler has not looked at them, the
// status stays what it was. Where the resources go, and that all is done, it tells at once;
// what happens between is gathered for a second, and for ten if there are a thousand
// members (spacing.go).
//
// The one condition it leaves alone is Scheduled=False with reason
// InvalidResourceSelectors, which package snapshot sets and takes back.
package status
