// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Names that agents and gateways of the previous version write into conditions. They are read, and
// removed from the objects that still have them. Remove after the next release.
const (
	// PreviousPlacementsRetained is the previous type ConditionPlacementsRetained.
	PreviousPlacementsRetained = "PlacementsHeld"
	// PreviousHubRestored is the previous reason ReasonHubRestored.
	PreviousHubRestored = "HubWentBack"
	// PreviousWorkReplaced is the previous reason ReasonWorkReplaced.
	PreviousWorkReplaced = "AnotherWork"
	// PreviousNothingRetained is the previous reason ReasonNothingRetained.
	PreviousNothingRetained = "NothingHeld"
	// PreviousHubURLReachable is the previous type ConditionHubURLReachable.
	PreviousHubURLReachable = "HubFollowed"
	// PreviousHubReached is the previous reason ReasonHubURLReachable.
	PreviousHubReached = "HubReached"
	// PreviousHubNotReached is the previous reason ReasonHubURLUnreachable.
	PreviousHubNotReached = "HubNotReached"
)
