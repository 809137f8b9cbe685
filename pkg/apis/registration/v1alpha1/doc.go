// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is how a cluster becomes a member: the API group
// fleet.cattle.io.
//
// An administrator creates a ClusterRegistrationToken in a registration
// namespace; the hub answers with a Secret of the same name that holds the
// agent's values.yaml. With it an agent creates a ClusterRegistration, which is
// a request: it carries the agent's public key, and the hub's answer comes back
// in its status as a token that only the holder of the private key can open.
// The hub gives each request a Cluster (one that an administrator made
// beforehand with the same clientID, or a new one), and each Cluster a
// MemberCluster. A ClusterGroup selects Clusters by label.
//
// A Cluster with spec.kubeConfigSecret is imported instead: the hub installs
// the agent there.
//
// What hub and agent must spell alike (names, labels, Secret keys, the context
// of a sealed token) is in names.go and wire.go.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.cattle.io
package v1alpha1
