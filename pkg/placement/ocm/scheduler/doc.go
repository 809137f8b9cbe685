// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler decides which clusters Placements of Open Cluster Management are for,
// and writes PlacementDecisions. The controller's name is placement.decisions.
//
// What a Placement asks for is read once for each generation (wish.go). What it can choose
// from is kept from events (roster.go): clusters, the sets that they are in, which
// namespaces sets are bound to, scores. So it is known, too, whom a change concerns
// (concern.go), and nobody else is woken. How often clusters are chosen, which Balance
// asks for, is counted from PlacementDecisions, those about to be written included
// (tally.go).
//
// Deciding is pure (decide.go): rules and scorers of ../plugins rank the clusters,
// groups.go and slices.go cut them into PlacementDecisions. write.go brings these to the
// hub, decisions before the Placement's status, and only what differs.
//
// What it refuses to do: it leaves a Placement alone that has the annotation for that, and
// PlacementDecisions that belong to nobody or to another owner.
package scheduler
