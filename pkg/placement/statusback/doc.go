// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statusback brings the status that a placed resource has on its member
// back into the resource on the hub, for placements whose strategy asks for it
// (reportBackStrategy Mirror to OriginalResource). It is the controller
// placement.reportback.
//
// One resource can show one status: only placements on exactly one member by their
// policy are served, PickFixed with one name or PickN with 1. What came in an
// envelope is not on the hub and has no place for a status.
//
// A member's agent writes the statuses into its Works, where it could claim anything.
// So nothing of a Work is believed but the statuses themselves: which placement,
// which member and which resources follow from the placement, its binding and its
// resource snapshot, which the agent cannot write. A member can set the status of
// what was placed on it for this purpose, and of nothing else.
//
// With destination WorkAPI there is nothing to do: the statuses stand in the Works.
package statusback
