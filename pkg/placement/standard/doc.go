// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standard publishes the decisions of placements as PlacementDecisions of
// multicluster.x-k8s.io, for programs that only know that API. The controllers are placement.standard,
// for ClusterResourcePlacements and ResourcePlacements, and placement.standardocm, for Open Cluster
// Management's Placements.
//
// They decide nothing: fleet.go reads bindings, ocm.go reads the PlacementDecisions of Placements.
// publish.go divides them into objects, finds the ClusterProfile of each cluster, and writes the
// differences (profiles.go stores which placements wait for a profile). The objects of a placement that
// is being deleted, or no longer requests them, are deleted at once.
//
// The controllers name no cluster that has no ClusterProfile, or one of another manager. They do not
// touch objects of other owners.
package standard
