// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedcluster lets ManagedClusters join and leave. It runs on the hub.
//
// A cluster that an administrator accepts gets the namespace of its name, and the permissions that
// agents of Open Cluster Management expect, under the names that they and other products use. A
// denied one can still read that it is denied. A deleted one is released when its works and add-ons
// are gone: [Reconciler] deletes them, and waits for its agent to clean up. The names and contents
// of these objects are in desired.go, as functions of the cluster's name.
//
// A namespace that existed before is not a cluster's, unless a label says so: otherwise a user who
// may name a cluster could get permissions in any namespace.
package managedcluster
