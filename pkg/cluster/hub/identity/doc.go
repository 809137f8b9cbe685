// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity decides which users of the hub are agents of which members.
//
// A cluster of the fleet is a MemberCluster. These packages manage its lifecycle:
//
//   - registration (hub): a ClusterRegistrationToken becomes a values Secret, an
//     agent's ClusterRegistration becomes a Cluster, a MemberCluster and a
//     credential that only that agent can read.
//   - membership (hub): a MemberCluster becomes a namespace, an account, its
//     rights and an InternalMemberCluster; its deletion undoes them in order.
//   - enroll (member): the agent's key, its registration, its credential and the
//     renewal of that.
//   - heartbeat (member): the agent's report into the InternalMemberCluster.
//   - sealing: how the credential is closed on the hub and opened on the member.
//
// The two sides do not import each other.
//
// This package has [Seats], which define the names of a member's objects on the hub, and [Identities],
// which decide for which members an authenticated user can open a tunnel. It trusts no name from a
// member, only the user that the hub's API server authenticated.
package identity
