// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// ConfirmRemovalAnnotation is on a placement. Its value is the tokens of confirmed removals,
	// separated by commas. A user writes it. ConditionRemovalSuspended reports the token of a
	// suspended removal.
	ConfirmRemovalAnnotation = "fleetgate.io/confirm-removal"
	// SelectorsHashAnnotation is on the master of a group of resource snapshots. Its value is the
	// hash of the resource selectors that last produced the group.
	SelectorsHashAnnotation = "fleetgate.io/selectors-hash"
	// DeletesOnAnnotation is on an override snapshot with a rule of type Delete. Its value is the
	// members that such a rule selected by label when the override was written, and those whose
	// removal was confirmed since, separated by commas.
	DeletesOnAnnotation = "fleetgate.io/deletes-on"

	// ConditionRemovalSuspended is True on a placement if many objects would be removed from
	// members although they exist on the hub, and neither the placement nor an override changed, or
	// if the new policy of the placement fits none of many members.
	ConditionRemovalSuspended = "RemovalSuspended"
	// ReasonConfirmationRequired is a reason of ConditionRemovalSuspended.
	ReasonConfirmationRequired = "ConfirmationRequired"
	// ReasonOverrideConfirmationRequired is a reason of ConditionRemovalSuspended: the labels of
	// members changed, so that an existing override deletes objects there.
	ReasonOverrideConfirmationRequired = "OverrideConfirmationRequired"
	// ReasonChartConfirmationRequired is a reason of ConditionRemovalSuspended: members changed, so that
	// charts have fewer objects for them.
	ReasonChartConfirmationRequired = "ChartConfirmationRequired"
	// ReasonPolicyConfirmationRequired is a reason of ConditionRemovalSuspended: the policy changed and
	// fits no member.
	ReasonPolicyConfirmationRequired = "PolicyConfirmationRequired"
	// ReasonTenancyConfirmationRequired is a reason of ConditionRemovalSuspended: many members are no
	// longer in a ManagedClusterSet that is bound to the namespace of the placement.
	ReasonTenancyConfirmationRequired = "TenancyConfirmationRequired"

	// ConditionRemovalPending is True on a placement while members that lost it more than a minute ago
	// still have it.
	ConditionRemovalPending = "RemovalPending"
	// ReasonMembersNotCleared is a reason of ConditionRemovalPending.
	ReasonMembersNotCleared = "MembersNotCleared"

	// ConditionDataRetained is True on a placement while members that it no longer selects retain
	// objects of it, which may hold data.
	ConditionDataRetained = "DataRetained"
	// ReasonNoLongerSelected is a reason of ConditionDataRetained.
	ReasonNoLongerSelected = "NoLongerSelected"
)

// LargeRemovalLeast is the least number of removed objects that needs a confirmation.
const LargeRemovalLeast = 5

const largeRemovalPercent = 20

// LargeRemoval reports whether removing that many of all objects at once needs a confirmation.
func LargeRemoval(removed, all int) bool {
	return removed >= LargeRemovalLeast && removed*100 > largeRemovalPercent*all
}

// SuspendsRemoval reports whether removing the named ones of all waits for a confirmation on the
// object, and returns the token that confirms it. It counts them together with the ones that were
// removed recently.
func SuspendsRemoval(object interface{ GetAnnotations() map[string]string }, removed []string, all, recent int) (token string, suspends bool) {
	token = RemovalToken(removed)
	return token, len(removed) > 0 && LargeRemoval(len(removed)+recent, all+recent) && !RemovalConfirmed(object, token)
}

// RemovalToken returns the token of a removal. It depends on the removed objects, so that a
// confirmation does not cover a different removal.
func RemovalToken(removed []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(removed)), "\n")))
	return hex.EncodeToString(sum[:5])
}

// RemovalConfirmed reports whether the removal with this token is confirmed.
func RemovalConfirmed(placement interface{ GetAnnotations() map[string]string }, token string) bool {
	for confirmed := range strings.SplitSeq(placement.GetAnnotations()[ConfirmRemovalAnnotation], ",") {
		if strings.TrimSpace(confirmed) == token {
			return true
		}
	}
	return false
}
