// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names that the previous version wrote into conditions. They are read until the gateway replaces
// them. Remove after the next release.
const (
	// PreviousUseLimitReached is the previous reason TokenReasonUseLimitReached.
	PreviousUseLimitReached = "UsedUp"
	// PreviousTokenUseLimitReached is the previous reason RegistrationReasonTokenUseLimitReached.
	PreviousTokenUseLimitReached = "TokenUsedUp"
)
