// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection finds what a placement selects on the hub, and makes of it
// what members can be sent.
//
// A Selector answers one question: given the selectors of a placement, which
// manifests, in which order? Types come from discovery (Kinds), candidates from
// watches of metadata that a Watcher keeps for exactly the types that
// placements select, and full objects are read one by one, by name, when they are
// needed, so the hub's memory holds names and labels, never contents.
//
// The same Watcher tells which placements a changed object concerns; it queues
// them within milliseconds.
//
// What is never sent (refuse.go), what is cut off an object because a server
// made it (strip.go) and the order (order.go) are pure functions.
//
// Envelopes are selected like other objects; package snapshot opens them.
package selection
