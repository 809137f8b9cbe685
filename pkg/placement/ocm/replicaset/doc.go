// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicaset makes ManifestWorks of ManifestWorkReplicaSets: one for each cluster
// that a Placement has decided for, in the cluster's namespace. The controller's name is
// manifestworkreplicaset.works.
//
// It watches ManifestWorkReplicaSets, their ManifestWorks, Placements and
// PlacementDecisions. Whose turn it is says package strategy; how a cluster stands, which
// that needs to know, says the status of its ManifestWork (standing.go). Everything is
// computed from these objects each time: the name of a ManifestWork follows from what it
// is for, and whoever is killed between two writes goes on where it was.
//
// Placements may be missing on a hub: the controller waits for these kinds (pkg/kube/crdwait),
// which somebody else serves. ManifestWorks are read without their manifests
// ([CacheOptions]).
//
// What it refuses to do: it never writes a ManifestWork that has another's labels, removes
// none while a Placement is not there, and starts no further cluster once more failed than
// may.
package replicaset
