// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction removes a placement from one member when somebody requests it with a
// ClusterResourcePlacementEviction, within the placement's ClusterResourcePlacementDisruptionBudget of
// the same name.
//
// Decide decides from placement, bindings and budget. The Reconciler is the controller
// placement.evictions. Each eviction is decided once: a blocked one is not retried, and another attempt
// needs a new eviction. Evictions are decided one after the other, from the API server and not from the
// cache, so that two of them never spend the same budget.
//
// Evicting means deleting the binding. Its Works are deleted with it, and the scheduler decides again.
// It may pick the same member, unless that is tainted.
//
// Package failover creates evictions for placements that request them by annotation.
package eviction
