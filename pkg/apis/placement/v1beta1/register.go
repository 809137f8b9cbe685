// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "placement.kubernetes-fleet.io"

// KeyPrefix begins every well-known label, annotation and finalizer of the
// group that this package defines.
const KeyPrefix = "kubernetes-fleet.io/"

// GroupVersion is the version in which the group is stored.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// AddToScheme makes the kinds of this package known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ClusterResourcePlacement{}, &ClusterResourcePlacementList{},
		&ResourcePlacement{}, &ResourcePlacementList{},
		&ClusterResourcePlacementStatus{}, &ClusterResourcePlacementStatusList{},
		&ClusterSchedulingPolicySnapshot{}, &ClusterSchedulingPolicySnapshotList{},
		&SchedulingPolicySnapshot{}, &SchedulingPolicySnapshotList{},
		&ClusterResourceSnapshot{}, &ClusterResourceSnapshotList{},
		&ResourceSnapshot{}, &ResourceSnapshotList{},
		&ClusterResourceBinding{}, &ClusterResourceBindingList{},
		&ResourceBinding{}, &ResourceBindingList{},
		&Work{}, &WorkList{},
		&AppliedWork{}, &AppliedWorkList{},
		&ClusterResourceOverride{}, &ClusterResourceOverrideList{},
		&ResourceOverride{}, &ResourceOverrideList{},
		&ClusterResourceOverrideSnapshot{}, &ClusterResourceOverrideSnapshotList{},
		&ResourceOverrideSnapshot{}, &ResourceOverrideSnapshotList{},
		&ClusterResourceEnvelope{}, &ClusterResourceEnvelopeList{},
		&ResourceEnvelope{}, &ResourceEnvelopeList{},
		&ClusterResourcePlacementEviction{}, &ClusterResourcePlacementEvictionList{},
		&ClusterResourcePlacementDisruptionBudget{}, &ClusterResourcePlacementDisruptionBudgetList{},
		&ClusterStagedUpdateRun{}, &ClusterStagedUpdateRunList{},
		&StagedUpdateRun{}, &StagedUpdateRunList{},
		&ClusterStagedUpdateStrategy{}, &ClusterStagedUpdateStrategyList{},
		&StagedUpdateStrategy{}, &StagedUpdateStrategyList{},
		&ClusterApprovalRequest{}, &ClusterApprovalRequestList{},
		&ApprovalRequest{}, &ApprovalRequestList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource returns the group-qualified form of a resource's name, as errors
// and events show it.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}
