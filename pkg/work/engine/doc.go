// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine brings objects to a member, keeps them there, and says what became of
// them, for works of all families. It knows no API of a family: what it is handed is a
// [Dialect], with the field manager, the annotations, the order of kinds and the words of
// one family, and for each work a [Work] and its items.
//
// One work goes like this:
//
//  1. [Engine.Plan] reads manifests and finds their kinds. What is refused whatever is on
//     the member is refused here (refuse).
//  2. The family says in which [Way] each item is brought.
//  3. [Engine.Bring] enters in the [Ledger] what is about to be written, so that nothing
//     is lost if the agent dies in the middle.
//  4. It writes wave by wave (Engine.run), by a merge on our side or an apply on the
//     server's (write), but for the fields that are the member's to decide (leave), or
//     compares before or instead (differences). It compares the answer to a write with the
//     manifest (verify), and judges the availability of each object.
//  5. What is in the ledger and no longer wanted is removed (prune), or left to an heir.
//
// An [Outcome] carries a refusal with a reason for programs and a message for people;
// an error is what could not be found out. An object that by the watch is as it was left
// is not asked for. One that is changed back after each repair is contested: repairs of
// it wait (patience), and the outcome says who does it (contest).
//
// It refuses to write objects that the family does not let it own ([Work.May]), to delete
// an object that does not carry its owner reference, and to remove anything as long as a
// manifest cannot be read: it could be any of them.
//
// Below it are merge, which computes patches, compare, which finds differences,
// availability, which judges objects, and memberwatch, of which there is one for each
// agent: all families see by the same watches.
package engine
