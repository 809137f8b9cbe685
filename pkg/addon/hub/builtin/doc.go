// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin shows the features of fleetgate's agent as add-ons of Open Cluster Management:
// managed-serviceaccount, cluster-proxy and cluster-gateway. The controller's name is
// managedclusteraddon.builtin.
//
// It watches ManagedClusters that mirror members, the members, the gateway's ManagedServiceAccounts,
// and the ManagedClusterAddOns with these names. Each member gets the three ManagedClusterAddOns in
// its namespace, with a condition Available while the feature works (decide.go).
//
// It writes only ManagedClusterAddOns that it created, which have a label. If somebody installs an
// add-on of such a name, with a ClusterManagementAddOn, that one replaces it.
package builtin
