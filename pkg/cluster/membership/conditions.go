// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

// Reasons of the condition ReadyToJoin beside those of the API's reference.
const (
	// ReasonNameInvalid goes with False: a namespace cannot be named after the
	// member.
	ReasonNameInvalid = "MemberClusterNameInvalid"
	// ReasonNamespaceConflict goes with False: the member's namespace exists and is
	// another's, or is on its way out.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonIdentityInvalid goes with False: spec.identity is nobody to whom rights
	// can be given.
	ReasonIdentityInvalid = "IdentityInvalid"
)
