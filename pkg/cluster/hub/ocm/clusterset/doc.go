// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset determines which clusters are in which ManagedClusterSet, and which sets are
// bound to which namespace. It runs on the hub.
//
// [Members] is the rule, as a function of values. [Reconciler] writes how many clusters each set
// has, tells clusters which namespaces their sets want there, and maintains the sets default and
// global. [BindingReconciler] reports whether the set of a binding exists. A thousand clusters that
// join at the same time change the same two sets: statuses are written together, at most once a
// second.
package clusterset
