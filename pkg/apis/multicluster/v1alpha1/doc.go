// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group multicluster.x-k8s.io: how the fleet shows
// its members, and for which of them something was decided to be, to clients that know
// nothing of fleetgate.
//
// For every member the hub publishes a ClusterProfile in the system namespace.
// Its access provider [AccessProvider] holds the URL of the member behind the
// gateway and never a credential: a client uses the identity that it has on the
// hub.
//
// Other managers may publish profiles, and other access providers in ours; the
// hub writes only what is its own.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
