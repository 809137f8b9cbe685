// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction takes a placement off one member when somebody asks for it
// with a ClusterResourcePlacementEviction, within the placement's
// ClusterResourcePlacementDisruptionBudget, which is the one of its name.
//
// Judge is the decision: placement, bindings and budget in, answer out. The
// Reconciler is the controller placement.evictions around it. An eviction is
// answered once: a blocked one is not tried again, whoever wants another try
// makes another. Evictions are answered one after the other, from what stands
// in the API server and not in the cache, so that two of them never spend the
// same budget.
//
// To evict is to delete the binding. Its Works go with it, and the scheduler
// decides again: it may pick the same member, unless that is tainted.
//
// FailoverReconciler is the controller placement.failover. It asks for evictions
// itself, for placements that say by annotation when: after a member was silent
// for some time, or once it has a certain taint (see Failover).
package eviction
