// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group fleet.cattle.io: the registration of clusters.
//
// An administrator creates a ClusterRegistrationToken in a registration namespace. The hub creates
// a Secret of the same name that holds the agent's values.yaml. With it an agent creates a
// ClusterRegistration, which is a request with the agent's public key. The hub writes a token to
// its status that only the owner of the private key can open. The hub assigns each request a
// Cluster (one that an administrator created with the same clientID, or a new one), and each
// Cluster a MemberCluster. A ClusterGroup selects Clusters by label.
//
// A Cluster with spec.kubeConfigSecret is imported instead: the hub installs the agent.
//
// Names, labels, Secret keys and the context of a sealed token that hub and agent share are in
// names.go and wire.go.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1
