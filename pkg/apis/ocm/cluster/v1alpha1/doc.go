// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the newest kinds of the API group cluster.open-cluster-management.io,
// and what kinds of Open Cluster Management share that are not kinds themselves: how
// something is rolled out to the clusters of a Placement.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1alpha1
