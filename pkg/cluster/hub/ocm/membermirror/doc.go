// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membermirror mirrors members with fleetgate's own agents as ManagedClusters of the same
// name. It runs on the hub.
//
// The MemberCluster has all data of a member, and the ManagedCluster is updated from it by
// [desired]. The acceptance of a member is one decision in two places: the taint of a MemberCluster
// that waits for approval, and hubAcceptsClient. When somebody changes one of them, the other one
// follows ([decide]). The controller that accepts a cluster writes the first status of an accepted
// member ([Members.Report]), because a klusterlet reports no earlier either. On a MemberCluster
// only that taint is ever written. A ManagedCluster of a member's name that somebody else created
// is not changed, because it may be another cluster's.
package membermirror
