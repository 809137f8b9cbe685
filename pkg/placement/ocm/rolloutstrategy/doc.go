// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolloutstrategy says which clusters of a placement are given something new now, and
// which wait: Open Cluster Management's three rollout strategies, as a function of values.
//
// Whoever rolls something out (works to clusters, add-ons to clusters) tells
//
//   - the [Strategy],
//   - the placement's decision groups, each with its clusters ([Group]),
//   - how each cluster stands that has been given the new already ([Standing]),
//   - the time,
//
// and gets a [Plan]: whose turn it is, who took too long, whether the rollout has stopped
// because too many failed, and when to ask again though nothing changed. Nothing is kept
// between two calls, so that a controller that is killed goes on where it was.
//
// The rules are those of the public API's documents. Where the implementation that its
// users know differs from these in ways that stall a rollout, the documents count here:
//
//   - Clusters outside of the mandatory groups are not counted while these are rolled out:
//     one that failed in an earlier rollout would hold up everything after them.
//   - In ProgressivePerGroup a cluster that timed out is not set off against another one
//     of its group that is under way.
//   - maxFailures above the number of clusters tolerates all of them, not none.
package rolloutstrategy
