// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate answers "where would this placement go, and why not there"
// from files, without a hub: Parse reads manifests as kubectl writes them, Run
// has the scheduler's own framework decide, Print writes what came out.
//
// It reads placements, MemberClusters and, to take into account what is placed
// already, bindings. It decides as of the moment when the members were written
// to the files, so that a file of yesterday does not consist of silent members;
// a member that was written by hand, without a status, counts as joined and
// healthy.
//
// Of Open Cluster Management it reads Placements, ManagedClusters, their sets and
// bindings, AddOnPlacementScores and PlacementDecisions, and has package decision decide.
package simulate
