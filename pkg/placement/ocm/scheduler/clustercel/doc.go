// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercel evaluates the CEL expressions of Placements over clusters: celSelector.
//
// The variable managedCluster is the whole ManagedCluster. Besides the functions of
// [boundedcel.Compiler], managedCluster.scores("name") lists the scores in the cluster's
// AddOnPlacementScore of that name, and "text".parseJSON() reads JSON.
//
// A compiled [Selector] knows which fields it reads, so that only their changes trigger a new
// decision.
package clustercel
