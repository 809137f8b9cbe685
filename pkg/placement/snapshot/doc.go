// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot freezes what a placement wants: its policy, and the resources
// that it selects.
//
// Everything downstream works from snapshots and never from the placement or
// the live resources, so a rollout can be followed, paused and repeated. A
// snapshot's content never changes; a change makes a new one with the next
// index, and label is-latest-snapshot moves to it: the new one gets it first,
// so there is always at least one, and the higher index counts.
//
// The Reconciler is the controller placement.snapshots. It selects resources
// (package selection), writes both kinds of snapshot when something changed,
// removes those beyond the revision history limit, and puts the placement's
// condition Scheduled to False when the selectors are invalid. What is selected is
// bounded by what the placement's author may have delivered (author.go). The policy
// snapshot's annotation CRP-generation is written last: it says that this
// generation of the placement has been looked at.
//
// Resources that do not fit into one object are split over a group of
// snapshots. The master is written last, so a group with a master is complete.
//
// Contents reads groups back for those who dispatch them.
package snapshot
