// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install creates and deletes ManagedClusterAddOns as the install strategies of
// ClusterManagementAddOns ask for. The controller's name is clustermanagementaddon.install.
//
// It watches ClusterManagementAddOns, their ManagedClusterAddOns, Placements and
// PlacementDecisions. With strategy Manual it creates and deletes nothing. The garbage collector
// deletes the ManagedClusterAddOns of a deleted ClusterManagementAddOn. One that has the finalizer of
// package template stays until they are gone.
//
// It never deletes a ManagedClusterAddOn while a list of decisions is incomplete, creates none for
// a cluster that has no ManagedCluster, and leaves add-ons with the annotation lifecycle alone if
// its value names another manager than the hub.
package install
