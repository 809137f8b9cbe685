// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the v1beta1 kinds of the API group cluster.open-cluster-management.io: the
// selection of clusters.
//
// A [Placement] selects clusters. Its decisions are in [PlacementDecision]s with label
// [PlacementLabel], each for up to a hundred clusters of one decision group. Labels hold the index
// and name of the group. Either pkg/placement/ocm/scheduler writes them, or another product does and
// fleetgate only reads them.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1
