// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

// Placements are the kinds of what Open Cluster Management's Placements are decided with,
// beside those of clusters.
func Placements() []string {
	const group = ".cluster.open-cluster-management.io"
	return []string{"placements" + group, "placementdecisions" + group, "addonplacementscores" + group}
}
