// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the member's side of a Work: it brings the manifests of every
// Work in the member's namespace on the hub to the member, keeps them there, and
// reports what became of them. It runs in the agent.
//
// One look at a Work goes like this (Reconciler.Reconcile):
//
//  1. The Work gets its finalizer, the member an AppliedWork of the same name,
//     which owns all that the Work applies.
//  2. Manifests are decoded and their kinds found (plan).
//  3. What is about to be written is entered in the AppliedWork's status, the
//     ledger, so that nothing is lost if the agent dies in the middle.
//  4. Manifests are applied in waves (engine), client-side by a three-way merge
//     or server-side, and the availability of each object is judged. A strategy can
//     ask for a comparison before, after or instead (differences). If a kind is
//     defined by the same Work, the look waits for it and goes on.
//  5. What is in the ledger and no longer in the Work is removed.
//  6. The Work's status is computed (desiredStatus) and written if it differs.
//
// What starts a look: a change of the Work's spec, a change of one of its
// objects on the member (package memberwatch), a new kind for which it waits, a
// back-off after a refusal, and a slow resync. Changed Works come first (priority).
// A look that finds by the watch that nothing changed asks nobody for anything, and
// writes nothing anywhere. An object that is changed back after each repair is
// contested: repairs of it wait (pace), and the Work says who does it (contest).
//
// Four sub-packages are pure or stand alone: merge computes patches, compare
// differences, availability judges objects, memberwatch watches. The engine knows
// owners, strategies and manifests but not Works, so that another kind of work can
// stand on it.
//
// A deleted Work is finalized object by object and the AppliedWork last
// (deletion), or abandoned if the hub says so.
//
// It refuses to write objects that another AppliedWork owns unless both sides
// allow co-ownership, to delete an object that does not carry its own owner
// reference or that another Work wants (heir), and to remove anything while a member
// leaves the fleet: what was placed stays.
package apply
