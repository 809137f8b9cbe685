// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API group cluster.open-cluster-management.io: the clusters of a fleet.
//
// A [ManagedCluster] represents one cluster. Its agent, or a user, creates it, and a user with the
// right to accept clusters accepts it. Objects that belong to one cluster are in the namespace of
// its name.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1
