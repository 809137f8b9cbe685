// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standard publishes what placements were decided for as PlacementDecisions of
// multicluster.x-k8s.io, for programs that know that API and none of the placements'. The
// controllers' names are placement.standard, of ClusterResourcePlacements and
// ResourcePlacements, and placement.standardocm, of Open Cluster Management's Placements.
//
// They decide nothing: fleet.go reads bindings, ocm.go reads the PlacementDecisions of
// Placements. publish.go cuts that into objects, finds for each cluster its ClusterProfile,
// and writes what differs (profiles.go remembers who waits for one). A placement that is
// being deleted, or does not ask for it any more, loses its objects at once.
//
// What it refuses to do: it names no cluster that has no ClusterProfile, or one of another
// manager, and it does not touch objects that are not its placement's.
package standard
