// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package score reports the free resources of a member as an AddOnPlacementScore in its namespace on
// the hub, by which Placements of Open Cluster Management rank clusters. It runs on the member.
//
// A score depends on the amount that Pods can still request: 20 x log10(amount) + 20, at least -100 and
// at most 100, with cores, GiB, or pieces of an extended resource. Ten times as much are 20 more, and
// twice as much are 6 more, so the scores of small and large clusters can be compared. A cluster without
// scores counts as 0, like one with a tenth of a core.
//
// [Reporter] writes a score if it changed by two or more, at most every 30 seconds, and every five
// minutes otherwise. The scores expire ten minutes after they were written, so those of a member that
// is unreachable do not count.
//
// It writes no object that somebody else created, and needs rights to its own object only.
package score
