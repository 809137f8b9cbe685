// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// fullMembers is the number of members up to which a status has all details.
	fullMembers = 500
	// fullBytes limits the size of a status. etcd rejects objects of 1.5 MB, and every watcher receives
	// each update.
	fullBytes = 1 << 20
)

// isUnchanged reports whether a status equals the stored one: then it fits, without an expensive
// measurement.
func isUnchanged(before, status *placementv1beta1.PlacementStatus) bool {
	return meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionStatusTrimmed) == nil && equality.Semantic.DeepEqual(before, status)
}

// trim shortens a status with very many members or problems, and reports it in condition StatusTrimmed.
// It first drops what bindings and Works report too, in this order: single objects, the conditions of
// members without problems, all conditions of other members but the one that is not True, and members,
// from the end. The conditions of the placement count all members.
func trim(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) {
	members := len(status.PlacementStatuses)
	if members <= fullMembers && bytesOf(status) <= fullBytes {
		meta.RemoveStatusCondition(&status.Conditions, placementv1beta1.ConditionStatusTrimmed)
		return
	}
	condition := metav1.Condition{
		Type: placementv1beta1.ConditionStatusTrimmed, Status: metav1.ConditionTrue, ObservedGeneration: placement.GetGeneration(),
		Reason:  placementv1beta1.ReasonStatusOversized,
		Message: fmt.Sprintf("The placement is ready on %d of %d members. The status is too large for all details; see the bindings and the Works of a member for the rest", readyMembers(status), members),
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	each(status, withoutDetails)
	for _, cut := range []func(*placementv1beta1.PerClusterPlacementStatus){withoutSuccess, onlyNotTrue} {
		if bytesOf(status) <= fullBytes {
			return
		}
		each(status, cut)
	}
	for n := len(status.PlacementStatuses); n > 0 && bytesOf(status) > fullBytes; {
		n -= max(n/10, 1)
		status.PlacementStatuses = status.PlacementStatuses[:n]
	}
}

func each(status *placementv1beta1.PlacementStatus, cut func(*placementv1beta1.PerClusterPlacementStatus)) {
	for i := range status.PlacementStatuses {
		cut(&status.PlacementStatuses[i])
	}
}

// bytesOf is the encoded size of a status.
func bytesOf(status *placementv1beta1.PlacementStatus) int {
	text, err := json.Marshal(status)
	if err != nil {
		return 0 // It cannot be written either, and that error is reported.
	}
	return len(text)
}

// readyMembers counts the members without problems in an untrimmed status.
func readyMembers(status *placementv1beta1.PlacementStatus) int {
	count := 0
	for i := range status.PlacementStatuses {
		if isHealthy(&status.PlacementStatuses[i]) {
			count++
		}
	}
	return count
}

func isHealthy(m *placementv1beta1.PerClusterPlacementStatus) bool { return notTrue(m) == nil }

func notTrue(m *placementv1beta1.PerClusterPlacementStatus) *metav1.Condition {
	for i := range m.Conditions {
		if m.Conditions[i].Status != metav1.ConditionTrue {
			return &m.Conditions[i]
		}
	}
	return nil
}

func withoutDetails(m *placementv1beta1.PerClusterPlacementStatus) {
	m.FailedPlacements, m.DriftedPlacements, m.DiffedPlacements = nil, nil, nil
	m.ApplicableResourceOverrides, m.ApplicableClusterResourceOverrides = nil, nil
}

func withoutSuccess(m *placementv1beta1.PerClusterPlacementStatus) {
	if isHealthy(m) {
		m.Conditions = nil
	}
}

func onlyNotTrue(m *placementv1beta1.PerClusterPlacementStatus) {
	if c := notTrue(m); c != nil {
		m.Conditions = []metav1.Condition{*c}
	}
}
