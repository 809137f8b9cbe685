// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package azurefleet lets manifests of the first fleets work: MemberClusters of the group
// fleet.azure.com.
//
// It runs on the hub as the controller "membercluster.azurefleet" ([Reconciler]). While
// such a MemberCluster says Join, it keeps one of the present group with the same name and
// identity; when it says Leave, or goes, that one goes. All the rest is done by
// pkg/cluster/hub/membership; what comes of it is shown with the conditions and events that
// the documents of that time have, and in an InternalMemberCluster of the same group.
//
// It never takes over a MemberCluster of the present group that it did not make.
package azurefleet
