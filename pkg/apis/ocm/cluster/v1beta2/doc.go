// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta2 holds the v1beta2 kinds of the API group cluster.open-cluster-management.io: sets
// of clusters, and which namespaces can select from them.
//
// A [ManagedClusterSet] contains the clusters with its label, or those that its selector matches. A
// [ManagedClusterSetBinding] allows the Placements of its namespace to select from a set.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta2
