// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membership prepares MemberClusters and removes them.
//
// It has two controllers on the hub, so that a heartbeat never reconciles the member's objects, and a
// change of a MemberCluster never overwrites what its agents reported:
//
//   - "membercluster.join" ([Reconciler]) follows the spec of MemberClusters. For each it maintains the
//     namespace, the account and the Secret to which that account's tokens are bound, the rights of
//     spec.identity and the InternalMemberCluster, and sets ReadyToJoin. On deletion it asks the agent
//     to leave, waits, removes the rights and then the namespace. If a user removed its finalizers, the
//     garbage collector deletes the namespace, and this controller removes what keeps it.
//   - "membercluster.status" ([StatusReconciler]) follows the InternalMemberClusters, which the agents
//     write, and copies them, within limits, to the MemberClusters.
//
// Both compute from stored objects, so either can be killed at any time and continues from any
// incomplete state.
//
// Callers decide where a member's objects are on the hub, which rights it has, and which kinds are its
// orders. A leaving member keeps its placed resources: this package removes only the orders.
//
// It never adopts a namespace that it did not create.
package membership
