// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

// Placements returns the names of the CRDs that Open Cluster Management's Placements need, except
// those of clusters.
func Placements() []string {
	const group = ".cluster.open-cluster-management.io"
	return []string{"placements" + group, "placementdecisions" + group, "addonplacementscores" + group}
}
