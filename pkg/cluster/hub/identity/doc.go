// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity says which users of the hub speak for which member.
//
// A cluster of the fleet is a MemberCluster; how it becomes one, lives and goes
// is the subject of the packages below this one:
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
// This package itself holds [Seats], which say what on the hub belongs to a member, and
// [Members]: the answer to "for which members may this authenticated user open a tunnel". It trusts no name that a member sends,
// only the user that the hub's API server authenticated.
package identity
