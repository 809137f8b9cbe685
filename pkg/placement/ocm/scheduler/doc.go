// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler decides for Placements of Open Cluster Management, and writes
// PlacementDecisions. The controller's name is placement.decisions.
//
// A Placement's spec is parsed once per generation (parsed.go). Its candidates are maintained from
// events (cache.go): clusters, the sets that they are in, the namespaces that sets are bound to,
// scores. From these it follows which Placements a change concerns (concern.go); no others are
// decided again. The number of decisions per cluster, which Balance uses, is counted from
// PlacementDecisions, including those that are about to be written (decisionindex.go).
//
// Deciding is pure (decide.go): rules and scorers of ../plugins rank the clusters, groups.go and
// slices.go divide them into PlacementDecisions. write.go writes differences to the hub, decisions
// before the Placement's status.
//
// It ignores a Placement with the annotation for that, and never changes PlacementDecisions that
// have no owner or another one.
package scheduler
