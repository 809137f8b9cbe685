// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework decides which clusters a placement gets. Its input is a snapshot of the fleet;
// its output is a decision and the reasons against the other clusters.
//
// It is a library without a client and without a clock. The time is part of the snapshot, so the
// same input always gives the same decision, in a controller, in a test or in a simulation.
//
// The rules are packages below ../plugins, each one small function over one cluster. A Profile says
// which of them filter for which kind of policy, and which one ranks. The framework knows which clusters
// already hold the placement. It never moves those for a change that only concerns future clusters.
// A cluster loses the placement because the policy changed, because fewer clusters are wanted, or
// because it left; never because it was tainted, relabelled or became silent later.
//
// PickN works in rounds. The rules filter all candidates once. Then the best one is taken, again and
// again, and a Spread is updated with each. Candidates are ordered by the score of the spread, then
// by affinity, then by whether the cluster has the placement from an earlier policy, and last by
// name, the larger first.
//
// Profile.Decide is for placements that keep their clusters. Ranking.Rank filters, scores and cuts
// from the beginning each time, with the same rules and types.
//
// Types are neutral: they belong to no API group. Callers translate their objects, pass in the
// rules, and write the text about a Choice.
package framework
