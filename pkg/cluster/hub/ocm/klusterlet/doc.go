// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet is the hub's side of agents of Open Cluster Management, as they are:
// which of their requests for certificates are approved, and whether they are still there.
//
// What is decided is a function of values: [Read] and [Judge] say what becomes of a request,
// [LifeOf] whether a cluster counts as gone. [Approver], [Signer] and [LivenessReconciler]
// look and write around them. To let a cluster in is not decided here but by who may set
// hubAcceptsClient (package managed gives it its rights then).
//
// A certificate is all that tells one klusterlet from another. So what is not exactly the
// contract is left to people, and nothing is ever denied: a person may see more than this
// package does.
package klusterlet
