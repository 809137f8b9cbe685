// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 is the API group cluster.open-cluster-management.io: sets of clusters, and
// who may choose from them.
//
// A [ManagedClusterSet] is the clusters that have its label, or that its selector selects.
// A [ManagedClusterSetBinding] lets the Placements of its namespace choose from a set.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta2
