// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/rollout"
)

// maxAwaited limits how many of the members that a rollout waits for are named.
const maxAwaited = 3

// awaited describes the members that a rollout waits for: those that are not available and, without
// them, those that count as available only after a period, because the availability of some of their
// objects is not tracked. It is empty if there are none. The binding does not name them, because its
// status would change on all waiting members with every member that becomes available.
func (f *Facts) awaited() string {
	var unavailable []string
	var untracked string
	var since time.Time
	for _, b := range f.sortedBindings() {
		available := meta.FindStatusCondition(b.GetStatus().Conditions, placementv1beta1.ConditionAvailable)
		switch {
		case b.GetSpec().ResourceSnapshotName == "": // Nothing was rolled out to it yet.
		case available == nil || available.Status != metav1.ConditionTrue:
			unavailable = append(unavailable, b.GetSpec().TargetCluster)
		case available.Reason == placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable && available.LastTransitionTime.After(since):
			untracked, since = b.GetSpec().TargetCluster, available.LastTransitionTime.Time
		}
	}
	if n := len(unavailable); n > maxAwaited {
		return fmt.Sprintf("not available: %s and %d more", strings.Join(unavailable[:maxAwaited], ", "), n-maxAwaited)
	} else if n > 0 {
		return "not available: " + strings.Join(unavailable, ", ")
	}
	if untracked == "" {
		return ""
	}
	period := rollout.UnavailablePeriod(f.Placement.GetSpec())
	return fmt.Sprintf("%s counts as available from %s on, after unavailablePeriodSeconds (%d), because the availability of some of its objects is not tracked",
		untracked, since.Add(period).UTC().Format(time.TimeOnly+" UTC"), int(period.Seconds()))
}
