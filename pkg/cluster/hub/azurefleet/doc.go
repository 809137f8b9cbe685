// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package azurefleet supports manifests of the first fleets: MemberClusters of the group
// fleet.azure.com.
//
// It runs on the hub as the controller "membercluster.azurefleet" ([Reconciler]). While such a
// MemberCluster has the state Join, the controller maintains one of the current group with the same
// name and identity. When the state is Leave, or the MemberCluster is deleted, it deletes that one.
// pkg/cluster/hub/membership does the rest. The results are shown with the conditions and events that
// the documentation of that time specifies, and in an InternalMemberCluster of the same group.
//
// It never adopts a MemberCluster of the current group that it did not create.
package azurefleet
