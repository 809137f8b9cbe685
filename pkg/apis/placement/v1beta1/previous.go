// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Names that the previous version wrote into conditions. They are read, and removed from the
// objects that still have them. Remove after the next release.
const (
	// PreviousAuthorCheckSkipped is the previous type ConditionAuthorCheckSkipped.
	PreviousAuthorCheckSkipped = "AuthorNotAsked"
	// PreviousAuthorForbidden is the previous reason ReasonAuthorForbidden.
	PreviousAuthorForbidden = "AuthorMayNot"
	// PreviousGatewayForbidden is the previous reason ReasonGatewayForbidden.
	PreviousGatewayForbidden = "GatewayMayNot"
	// PreviousRetained is the previous type ConditionRetained.
	PreviousRetained = "Held"
	// PreviousCorrectionsReverted is the previous reason ReasonCorrectionsReverted.
	PreviousCorrectionsReverted = "RepairsReverted"
	// PreviousFieldsNotApplied is the previous reason ReasonFieldsNotApplied.
	PreviousFieldsNotApplied = "NotAsWritten"
)
