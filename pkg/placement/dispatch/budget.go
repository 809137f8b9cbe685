// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"

// detailBytes limits what a binding's status says about single objects. An API server stores objects of
// at most 1.5 MiB, and the Works of one binding can report more than that.
const detailBytes = 1 << 20

// withinBudget drops the values of drifted or differing fields when they exceed detailBytes. The names
// of the objects stay; the Works have the rest.
func withinBudget(s *placementv1beta1.ResourceBindingStatus) {
	size := 0
	for i := range s.FailedPlacements {
		size += statusBytes + len(s.FailedPlacements[i].Condition.Message)
	}
	fields := func(of []placementv1beta1.PatchDetail) {
		size += statusBytes
		for i := range of {
			size += len(of[i].Path) + len(of[i].ValueInHub) + len(of[i].ValueInMember) + 64
		}
	}
	for i := range s.DriftedPlacements {
		fields(s.DriftedPlacements[i].ObservedDrifts)
	}
	for i := range s.DiffedPlacements {
		fields(s.DiffedPlacements[i].ObservedDiffs)
	}
	if size <= detailBytes {
		return
	}
	for i := range s.DriftedPlacements {
		s.DriftedPlacements[i].ObservedDrifts = nil
	}
	for i := range s.DiffedPlacements {
		s.DiffedPlacements[i].ObservedDiffs = nil
	}
}
