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
	// ConfirmRemovalAnnotation is on a placement: the tokens of the removals that somebody has
	// confirmed, separated by commas. A condition names the token of a removal that is suspended.
	ConfirmRemovalAnnotation = "fleetgate.io/confirm-removal"
	// SelectorsHashAnnotation is on the master of a group of resource snapshots: the hash of the
	// resource selectors that selected it last.
	SelectorsHashAnnotation = "fleetgate.io/selectors-hash"

	// ConditionRemovalSuspended is True on a placement of which many objects would be removed
	// from members though they are on the hub and its selectors did not change.
	ConditionRemovalSuspended = "RemovalSuspended"
	// ReasonConfirmationRequired is of ConditionRemovalSuspended.
	ReasonConfirmationRequired = "ConfirmationRequired"
)

const (
	largeRemovalPercent = 20
	largeRemovalLeast   = 5
)

// LargeRemoval reports whether so many of all are removed at once that somebody has to confirm it.
func LargeRemoval(removed, all int) bool {
	return removed >= largeRemovalLeast && removed*100 > largeRemovalPercent*all
}

// RemovalToken names a removal: another one that somebody has confirmed is none of this.
func RemovalToken(removed []string) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(removed)), "\n")))
	return hex.EncodeToString(sum[:5])
}

// RemovalConfirmed reports whether somebody has confirmed the removal with this token.
func RemovalConfirmed(placement interface{ GetAnnotations() map[string]string }, token string) bool {
	for confirmed := range strings.SplitSeq(placement.GetAnnotations()[ConfirmRemovalAnnotation], ",") {
		if strings.TrimSpace(confirmed) == token {
			return true
		}
	}
	return false
}
