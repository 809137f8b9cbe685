// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot stores versions of what a placement specifies: its policy, and the resources that it
// selects.
//
// All later steps use snapshots and never the placement or the live resources. So a rollout can be
// followed, paused and repeated. The content of a snapshot never changes. A change creates a new
// snapshot with the next index, and label is-latest-snapshot moves to it. The new snapshot gets the
// label first, so that at least one has it; if two have it, the higher index counts.
//
// The Reconciler is the controller placement.snapshots. It selects resources (package selection),
// writes both kinds of snapshots when something changed, and removes those beyond the revision history
// limit. It sets the placement's condition Scheduled to False when the selectors are invalid. The
// rights of the placement's author limit the selection (author.go). The policy snapshot's annotation
// CRP-generation is written last: it means that this generation of the placement was handled.
//
// Resources that do not fit into one object are divided into a group of snapshots. The master is
// written last, so a group with a master is complete.
//
// Contents reads groups for package dispatch.
package snapshot
