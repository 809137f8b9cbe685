// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate shows where a placement would go, and why other members are rejected, from files and
// without a hub. Parse reads manifests as kubectl writes them, Run calls the scheduler's own framework,
// and Print writes the result.
//
// It reads placements, MemberClusters and, for existing placements, bindings. The time of the decision
// is when the members were written to the files, so that members in an old file do not count as
// disconnected. A handwritten member without a status counts as joined and healthy.
//
// Of Open Cluster Management it reads Placements, ManagedClusters, their sets and bindings,
// AddOnPlacementScores and PlacementDecisions, and calls package placement/ocm/scheduler.
package simulate
