// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the v1alpha1 kinds of the API group cluster.open-cluster-management.io,
// and the types of rollouts to the clusters of a Placement, which other kinds of Open Cluster
// Management use.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1alpha1
