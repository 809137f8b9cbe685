// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membermirror shows members of fleetgate's own agents as ManagedClusters of the same name. It
// runs on the hub.
//
// What there is to say of a member is in its MemberCluster, and the ManagedCluster is kept in
// step with that: [desired] says how. Whether a member is let in is one decision in two places:
// the taint of a MemberCluster that waits for approval, and hubAcceptsClient. Whichever of them
// somebody changes is followed by the other ([decide]). The status of one that is let in is written
// first by whoever accepts it, with that ([Members.Report]): a klusterlet reports no sooner
// either. Of a MemberCluster nothing but that taint is ever written. A ManagedCluster of a member's
// name that somebody else made is left alone: it may be another cluster's.
package membermirror
