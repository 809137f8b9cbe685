// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet is the hub's side of unmodified agents of Open Cluster Management: it approves
// their requests for certificates, and detects whether they are alive.
//
// Decisions are functions of values: [Read] and [Decide] decide about a request, [LifeOf] decides
// whether a cluster counts as gone. [Approver], [Signer] and [LivenessReconciler] read and write
// around them. A cluster is accepted by a user with permission to set hubAcceptsClient, not here
// (package managedcluster then gives it its permissions).
//
// Only its certificate distinguishes one klusterlet from another. So any request that does not
// follow the contract exactly is left to people, and nothing is ever denied: a person may know more
// than this package.
package klusterlet
