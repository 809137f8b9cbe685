// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API group cluster.open-cluster-management.io: which clusters
// something is for.
//
// A [Placement] says what clusters have to be like. Its decisions stand in
// [PlacementDecision]s with label [PlacementLabel], each for up to a hundred clusters of
// one decision group, which labels number and name. pkg/placement/ocm/scheduler makes them, or
// another product does: then they are read here.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1beta1
