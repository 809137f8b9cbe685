// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile publishes the members of the fleet to clients that do not know fleetgate, as
// ClusterProfiles of the cluster inventory API.
//
// It runs on the hub as the controller "membercluster.profile" ([Reconciler]). For each
// MemberCluster it maintains a ClusterProfile of the same name in one namespace. Its access
// provider points to the gateway, so it needs no credential: a client uses its own identity on the
// hub, and the hub's RBAC on clustergateways/proxy authorizes it.
//
// It writes only its own part of the object: other access providers, other conditions, and profiles
// of other managers stay unchanged. A profile is deleted with its MemberCluster and does not delay
// that.
package profile
