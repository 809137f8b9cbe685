// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API group cluster.open-cluster-management.io: the clusters of a fleet.
//
// A [ManagedCluster] stands for one cluster: its agent, or somebody else, asks for it, and
// whoever may accept it lets it in. What concerns the cluster alone is in the namespace of
// its name.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.open-cluster-management.io
package v1
