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

// KeyPrefix is the prefix of the group's well-known labels, annotations and finalizers.
const KeyPrefix = "kubernetes-fleet.io/"

// GroupVersion is the version in which the group is stored.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// AddToScheme registers the kinds of this package with a scheme.
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

// Resource returns a resource name with its group, as in errors and events.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}
