// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedcluster lets ManagedClusters in, and out again. It runs on the hub.
//
// A cluster that an administrator accepts gets the namespace of its name, and the rights that
// agents of Open Cluster Management expect, under the names that they and other products look
// for. One that is denied keeps the right to read that it is. One that is deleted goes when
// what was ordered for it is gone: [Reconciler] deletes that, and waits for its agent to clean
// up. What such an object may be named and hold is in desired.go, as functions of the name.
//
// A namespace that was there before is not a cluster's, unless somebody said so by a label:
// otherwise whoever may name a cluster could have rights in any namespace.
package managedcluster
