// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statusback copies the status of a placed resource on its member to the resource on the hub,
// if the placement's strategy requests it (reportBackStrategy Mirror to OriginalResource). It is the
// controller placement.reportback.
//
// One resource can show one status. So only placements whose policy selects exactly one member are
// served: PickFixed with one name, or PickN with 1. Objects in envelopes do not exist on the hub and
// have no place for a status.
//
// A member's agent writes the statuses into its Works, where it could claim anything. So the controller
// trusts nothing in a Work but the statuses themselves. Placement, member and resources follow from the
// placement, its binding and its resource snapshot, which the agent cannot write. A member can set the
// status of resources that were placed on it for this purpose, and of nothing else.
//
// With destination WorkAPI there is nothing to do, because the statuses are in the Works.
package statusback
