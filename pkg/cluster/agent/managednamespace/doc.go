// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managednamespace makes the namespaces on a member that the ManagedClusterSets of its
// hub want there. It runs on the member as the controller "managedcluster.namespaces".
//
// The hub says in the status of the member's ManagedCluster which sets want which namespaces.
// [Reconciler] makes those that are missing, labels all of them with the hub's label, and says in
// the same place what became of each. A namespace that no set wants any more stays, with what is
// in it: its label says so, and what to do about it is for people. Namespaces of Kubernetes and of
// the fleet are nobody's to want.
//
// It watches that one ManagedCluster, and nothing on the member: while sets want something it looks
// every minute whether it is there.
package managednamespace
