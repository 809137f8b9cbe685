// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercel is expressions of Placements over clusters: celSelector.
//
// The variable managedCluster is the whole ManagedCluster. Besides the functions of
// [expression.Compiler], managedCluster.scores("name") lists what the AddOnPlacementScore
// of that name says of the cluster, and "text".parseJSON() reads JSON.
//
// A compiled [Selector] says what it looks at, so that who decides is woken by nothing
// else.
package clustercel
