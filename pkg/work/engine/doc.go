// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine applies the objects of works to a member, keeps them up to date and reports the
// result. It serves all API families and knows the API of none. A family passes a [Dialect] (field
// manager, annotations, order of kinds, remedies), its decisions ([Family]) and, for each work, a [Work]
// with its [Owner] and its items.
//
// For one work:
//
//  1. [Engine.Plan] reads the manifests and maps their kinds to resources. It refuses manifests that are
//     invalid whatever the member contains (refuse).
//  2. The family sets the [Mode] of each item.
//  3. [Engine.Apply] enters new objects in the [Ledger] before it writes them. If the agent is killed, the
//     next one finds what to remove.
//  4. It writes wave by wave (Engine.run), by a client-side merge or a server-side apply (write). Fields that
//     the member decides are excluded (leave). Some modes compare first, or only compare (differences). The
//     engine compares the response to a write with the manifest (verify) and evaluates availability.
//  5. It removes objects that are in the ledger and no longer wanted (prune), or hands them to their next owners.
//
// A [ManifestResult] carries a refusal, with a reason for programs and a message for people, or an error
// if the result is unknown. The engine does not read an object that is unchanged according to the
// watch. An object that another client changes back after each correction is contested: corrections
// wait (backoff), and the result names the other client (contest).
//
// The engine does not write objects that the [Owner] does not let it write. It does not
// delete objects without its owner reference. It removes nothing while a manifest is unreadable,
// because that manifest could be for any of the objects.
//
// Subpackages: merge computes patches, compare finds differences, availability evaluates objects,
// and memberwatch watches the member. An agent has one watcher, which all families share.
package engine
