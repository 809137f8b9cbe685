// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicaset creates ManifestWorks from ManifestWorkReplicaSets: one for each cluster that
// a Placement has decided for, in the cluster's namespace. The controller's name is
// manifestworkreplicaset.works.
//
// It watches ManifestWorkReplicaSets, their ManifestWorks, Placements and PlacementDecisions.
// Package rolloutstrategy decides which clusters are next, from the status of their ManifestWorks
// (clusterstatus.go). Everything is computed from these objects each time. The name of a ManifestWork is
// deterministic, so a controller that is killed between two writes resumes where it was.
//
// A hub may lack Placements: the controller waits until somebody serves these kinds
// (pkg/kube/crdwait). ManifestWorks are cached without their manifests ([CacheOptions]).
//
// It never writes a ManifestWork with the labels of another set, and deletes none while a Placement
// does not exist. It starts no further cluster if more have failed than the strategy allows.
package replicaset
