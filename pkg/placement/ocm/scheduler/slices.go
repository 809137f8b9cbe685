// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strings"

	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/slicing"
)

// slicesOf divides a group into single PlacementDecisions, given those that the group had.
func slicesOf(places []framework.Place, before [][]string, byScore bool) [][]framework.Place {
	if byScore && len(places) > slicing.Size {
		// The order continues from slice to slice.
		return slices.Collect(slices.Chunk(places, slicing.Size))
	}
	names := make([]string, len(places))
	for i := range places {
		names[i] = places[i].Cluster.Name
	}
	held := slicing.Cut(names, before)
	cut := make([][]framework.Place, len(held))
	for i := range held {
		for _, at := range held[i] {
			cut[i] = append(cut[i], places[at])
		}
	}
	return cut
}

// byNumber orders names of PlacementDecisions by the number at their end.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
