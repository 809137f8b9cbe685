// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile shows the members of the fleet to clients that know nothing of
// fleetgate, as ClusterProfiles of the cluster inventory API.
//
// It runs on the hub as the controller "membercluster.profile" ([Reconciler]): for each
// MemberCluster it keeps a ClusterProfile of the same name in one namespace. Its access
// provider is the way through the gateway, so it needs no credential: a client uses the
// identity that it has on the hub, and what that may do is decided by the hub's RBAC on
// clustergateways/proxy.
//
// It writes what is its own and leaves the rest of the object alone: other access
// providers, other conditions, and profiles of other managers. A profile goes with its
// MemberCluster and holds nothing up.
package profile
