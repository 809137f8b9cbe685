// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failover moves placements away from members that are silent or
// tainted, for placements that ask for it by annotation; nothing moves by itself
// otherwise.
//
// Terms are what a placement asks for. The Reconciler is the controller
// placement.failover: where the terms are met it asks for an eviction, as a
// person would, so disruption budgets hold (package eviction). An eviction that
// a budget blocks is asked for again after a while. The scheduler knows the
// terms too: a member from which a placement would be moved is not picked for
// it.
//
// A silent member cannot remove what it has. It does when it comes back: the
// Works in its namespace are gone by then, or going.
package failover
