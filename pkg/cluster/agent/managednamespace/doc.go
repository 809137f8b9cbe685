// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managednamespace creates the namespaces on a member that the ManagedClusterSets of its
// hub request. It runs on the member as controller "managedcluster.namespaces".
//
// The status of the member's ManagedCluster lists which sets request which namespaces. [Reconciler]
// creates missing ones, sets the hub's label on all of them, and reports conditions in the same
// status. A namespace that no set requests any more stays, with its contents: the label marks it,
// and a user decides about it. Namespaces of Kubernetes and of fleetgate cannot be requested.
//
// The controller watches only that ManagedCluster. While sets request namespaces, it checks them
// every minute.
package managednamespace
