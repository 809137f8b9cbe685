// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failover moves placements from disconnected or tainted members to others, if their
// annotations request it. Otherwise nothing moves by itself.
//
// Terms are the request of a placement. The Reconciler is the controller placement.failover. When the
// terms are met it creates an eviction, as a user would, so disruption budgets apply (package
// eviction). An eviction that a budget blocks is requested again after a while. The scheduler also
// knows the terms: it does not pick a member that a placement would have to leave.
//
// A disconnected member cannot remove its resources. It removes them after it reconnects, because the
// Works in its namespace are deleted or being deleted by then.
package failover
