// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group multicluster.x-k8s.io: it publishes members, and placement
// decisions, to clients that do not know fleetgate.
//
// For every member the hub publishes a ClusterProfile in the system namespace. Its access provider
// [AccessProvider] holds the URL of the member behind the gateway and never a credential: a client
// uses its own identity on the hub.
//
// Other managers can publish profiles, and can add access providers to those of fleetgate. The hub
// changes only what it wrote.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
