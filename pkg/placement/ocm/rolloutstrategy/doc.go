// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rolloutstrategy decides which clusters of a placement get a new version now, and which wait:
// Open Cluster Management's three rollout strategies, as a function of values.
//
// A controller that rolls something out (works to clusters, add-ons to clusters) passes
//
//   - the [Strategy],
//   - the placement's decision groups, each with its clusters ([Group]),
//   - the state of each cluster that already has the new version ([Standing]),
//   - the time,
//
// and gets a [Plan]: which clusters are next, which have timed out, whether the rollout has stopped
// because too many failed, and when to compute the plan again if nothing changes. Nothing is stored
// between two calls, so that a controller that is killed resumes where it was.
//
// The rules are those of the public API's documentation. Where upstream's implementation differs
// from it in ways that stall a rollout, this package follows the documentation:
//
//   - While the mandatory groups are rolled out, clusters outside of them do not count.
//     Otherwise one that failed in an earlier rollout would block everything after them.
//   - In ProgressivePerGroup a cluster that timed out is not compensated by another one of
//     its group that is in progress.
//   - maxFailures above the number of clusters tolerates all of them, not none.
package rolloutstrategy
