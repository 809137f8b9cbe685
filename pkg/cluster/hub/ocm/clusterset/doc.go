// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset says which clusters are in which ManagedClusterSet, and which sets are
// bound to which namespace. It runs on the hub.
//
// [Members] is the rule, as a function of values. [Reconciler] writes how many clusters each
// set has, tells clusters which namespaces their sets want there, and keeps the sets default
// and global; [BindingReconciler] says whether the set of
// a binding is there. A thousand clusters that join at a time change the same two sets: their
// statuses are written at most once a second, all together.
package clusterset
