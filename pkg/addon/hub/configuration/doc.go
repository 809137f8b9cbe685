// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration decides which configurations each cluster has of an add-on, and rolls
// changes out. The controller's name is clustermanagementaddon.configuration.
//
// Configurations of a kind come from the first of these that has any: spec.configs of the
// ManagedClusterAddOn, the configs of the last Placement of the install strategy that selects the
// cluster, and the defaults of the ClusterManagementAddOn. The status of the ClusterManagementAddOn
// lists the last two (progression.go). graph.go assigns the ManagedClusterAddOns to Placements and
// decides who is next (package rolloutstrategy). The controller then writes status.configReferences
// and condition Configured of ManagedClusterAddOns, and the progress of each Placement.
//
// The add-on's manager computes the hashes of configurations, because only it knows their kinds,
// and writes them into both statuses. This package copies and compares them. Every write has the
// resourceVersion that was read, so no hash is lost.
//
// Of an add-on with another manager than the hub, it writes only the default configurations.
package configuration
