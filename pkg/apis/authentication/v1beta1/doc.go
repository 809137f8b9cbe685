// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API group authentication.open-cluster-management.io:
// rotating tokens of service accounts on members.
//
// A ManagedServiceAccount stands in a member's namespace on the hub. The
// member's agent makes a ServiceAccount of the same name on the member, in
// [AccountNamespace], asks the member's API server for a token of it, and
// writes that token with the member's CA into a Secret of the same name beside
// the ManagedServiceAccount. It renews the token long before it ends, and
// reports when in the status; the status never holds the token.
//
// The gateway has one of its own on every member, [GatewayAccount]: with it
// the gateway reaches the member's API server.
//
// The group is served as v1beta1 (stored) and as v1alpha1, both with the
// schema of the type here. Go code speaks v1beta1 only.
//
// +kubebuilder:object:generate=true
// +groupName=authentication.open-cluster-management.io
package v1beta1
