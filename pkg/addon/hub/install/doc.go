// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install creates and deletes ManagedClusterAddOns as the install strategies of
// ClusterManagementAddOns ask for. The controller's name is clustermanagementaddon.install.
//
// It watches ClusterManagementAddOns, their ManagedClusterAddOns, Placements and
// PlacementDecisions. With strategy Manual it creates and deletes nothing. A ClusterManagementAddOn
// that is being deleted keeps a finalizer until its ManagedClusterAddOns are gone, because their
// managers still need it.
//
// It never deletes a ManagedClusterAddOn while a list of decisions is incomplete, creates none for
// a cluster that has no ManagedCluster, and leaves add-ons with the annotation lifecycle alone if
// its value names another manager than the hub.
package install
