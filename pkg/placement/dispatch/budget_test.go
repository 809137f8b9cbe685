// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"strings"
	"testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestWithinBudget_DropsValuesWhenTheyTakeTooMuch(t *testing.T) {
	status := func(objects, bytes int) *placementv1beta1.ResourceBindingStatus {
		s := &placementv1beta1.ResourceBindingStatus{FailedPlacements: make([]placementv1beta1.FailedResourcePlacement, objects)}
		for range objects {
			s.DriftedPlacements = append(s.DriftedPlacements, placementv1beta1.DriftedResourcePlacement{
				ObservedDrifts: []placementv1beta1.PatchDetail{{Path: "/a", ValueInHub: strings.Repeat("x", bytes)}}})
			s.DiffedPlacements = append(s.DiffedPlacements, placementv1beta1.DiffedResourcePlacement{
				ObservedDiffs: []placementv1beta1.PatchDetail{{Path: "/a"}}})
		}
		return s
	}
	small := status(100, 1000)
	withinBudget(small)
	if len(small.DriftedPlacements[99].ObservedDrifts) != 1 || len(small.DiffedPlacements[99].ObservedDiffs) != 1 {
		t.Error("dropped values that fit")
	}
	large := status(100, 20000)
	withinBudget(large)
	if len(large.DriftedPlacements) != 100 || len(large.DiffedPlacements) != 100 || len(large.FailedPlacements) != 100 {
		t.Error("dropped the names of objects")
	}
	if len(large.DriftedPlacements[0].ObservedDrifts)+len(large.DiffedPlacements[0].ObservedDiffs) != 0 {
		t.Error("kept values that do not fit")
	}
}
