// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API group authentication.open-cluster-management.io: rotated tokens of
// service accounts on members.
//
// A ManagedServiceAccount is in a member's namespace on the hub. The member's agent creates a
// ServiceAccount of the same name on the member, in [AccountNamespace], and requests a token from
// the member's API server. It writes the token and the member's CA to a Secret with the name and
// namespace of the ManagedServiceAccount. It renews the token before it expires, and reports the
// expiry in the status. The status never holds the token.
//
// The gateway has its own account on every member, [GatewayAccount], with which it reaches the
// member's API server.
//
// The group is served as v1beta1 (stored) and as v1alpha1, both with the schema of the type here.
// Go code uses v1beta1 only.
//
// +kubebuilder:object:generate=true
// +groupName=authentication.open-cluster-management.io
package v1beta1
