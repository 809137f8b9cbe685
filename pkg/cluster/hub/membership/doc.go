// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membership makes a MemberCluster a member, and lets it leave.
//
// It runs on the hub as two controllers, so that a heartbeat never rebuilds what a
// member owns, and a change of a MemberCluster's status never overwrites what its
// agents reported:
//
//   - "membercluster.join" ([Reconciler]) follows the spec of MemberClusters. For
//     each it keeps the namespace, the account and the Secret to which that
//     account's tokens are bound, the rights of spec.identity and the
//     InternalMemberCluster, and says ReadyToJoin. On deletion it asks the agent to
//     leave, waits, takes the rights away and then the namespace.
//   - "membercluster.status" ([StatusReconciler]) follows the
//     InternalMemberClusters, which the agents write, and copies them, bounded, to
//     the MemberClusters.
//
// Both compute from what is there, so either can be killed at any moment and go on
// from any half-made state.
//
// Where a member lives on the hub, which rights it has and by which kinds of objects
// it is told what to do is not decided here: it is handed in. What a member has been
// sent stays on it when it leaves: this package only takes away the orders, never what
// came of them.
//
// It never takes over a namespace that it did not make.
package membership
