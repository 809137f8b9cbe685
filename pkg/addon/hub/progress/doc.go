// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress maintains each ManagedClusterAddOn: the owner reference to its
// ClusterManagementAddOn, the annotations of its ManagedCluster, and condition Progressing. The
// controller's name is managedclusteraddon.progress.
//
// It watches ManagedClusterAddOns, their ClusterManagementAddOns, the annotations of
// ManagedClusters, and the ManifestWorks with the label of an add-on. An add-on has completed when
// its manager created ManifestWorks from exactly the configurations in status.configReferences, and
// the cluster has applied them. decide.go holds the decision. Managers of add-ons in this project report
// it themselves, with the rest of their status.
//
// It changes only add-ons that the hub manages: their ClusterManagementAddOn exists and does not leave
// them to their own manager.
package progress
