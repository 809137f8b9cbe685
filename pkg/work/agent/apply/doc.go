// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the member's side of a Work: it brings the manifests of every
// Work in the member's namespace on the hub to the member, keeps them there, and
// reports what became of them. It runs in the agent.
//
// It is a dialect of package engine (words.go): what it says here is of Works, how objects
// are brought is said there. A Work goes through these files, in this order:
//
//  1. event.go: what starts a look. That is a change of the Work's spec, a change of one
//     of its objects on the member, a new kind for which it waits, a back-off after a
//     refusal, and a slow resync. Changed Works come first.
//  2. controller.go: the Work gets its finalizer, if it is its turn (turns.go).
//  3. plan.go: what the Work asks for. It gets an AppliedWork of the same name on the
//     member (record.go), which owns all that the Work applies and holds its ledger;
//     who may own it too is in ownership.go. Whether the Work follows from what was seen of
//     it, or the hub went back, is in seen.go, and what becomes of the rest then in hold.go.
//  4. write.go: the engine brings it. If a kind is defined by the same Work, the look
//     waits for it and goes on.
//  5. report.go: the Work's status is computed (status.go) and written if it differs, and
//     the next look is set.
//
// A look that finds by the watch that nothing changed asks nobody for anything, and
// writes nothing anywhere.
//
// A deleted Work is finalized object by object and the AppliedWork last
// (deletion), or abandoned if the hub says so.
//
// It refuses to write objects that another AppliedWork owns unless both sides
// allow co-ownership, to delete an object that does not carry its own owner
// reference or that another Work wants (heir), and to remove anything while a member
// leaves the fleet: what was placed stays.
package apply
