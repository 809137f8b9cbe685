// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// NewPlacement returns an empty placement for the namespace's scope.
func NewPlacement(namespace string) placementv1beta1.PlacementObject {
	if namespace == "" {
		return &placementv1beta1.ClusterResourcePlacement{}
	}
	return &placementv1beta1.ResourcePlacement{}
}

// NewPolicySnapshot returns an empty policy snapshot for the namespace's scope.
func NewPolicySnapshot(namespace string) placementv1beta1.PolicySnapshotObject {
	if namespace == "" {
		return &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	}
	return &placementv1beta1.SchedulingPolicySnapshot{}
}

// NewResourceSnapshot returns an empty resource snapshot for the namespace's
// scope.
func NewResourceSnapshot(namespace string) placementv1beta1.ResourceSnapshotObject {
	if namespace == "" {
		return &placementv1beta1.ClusterResourceSnapshot{}
	}
	return &placementv1beta1.ResourceSnapshot{}
}

// NewBinding returns an empty binding for the namespace's scope.
func NewBinding(namespace string) placementv1beta1.BindingObject {
	if namespace == "" {
		return &placementv1beta1.ClusterResourceBinding{}
	}
	return &placementv1beta1.ResourceBinding{}
}

// ResourceSnapshotMetadata returns an empty resource snapshot for reading only its metadata.
func ResourceSnapshotMetadata(namespace string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(resourceSnapshotKind(namespace)))
	return m
}

func resourceSnapshotMetadataList(namespace string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(resourceSnapshotKind(namespace) + "List"))
	return l
}

func resourceSnapshotKind(namespace string) string {
	if namespace == "" {
		return "ClusterResourceSnapshot"
	}
	return "ResourceSnapshot"
}

// anyNamespace is any namespace, to select the namespaced scope.
const anyNamespace = "any"

// derived are the kinds with the label of their placement, by which controllers list them.
func derived() []client.Object {
	return []client.Object{
		&placementv1beta1.ClusterSchedulingPolicySnapshot{},
		&placementv1beta1.SchedulingPolicySnapshot{},
		&placementv1beta1.ClusterResourceBinding{},
		&placementv1beta1.ResourceBinding{},
		ResourceSnapshotMetadata(""),
		ResourceSnapshotMetadata(anyNamespace),
	}
}

// MaxDecisions is the number of members that the schema of a policy snapshot allows.
const MaxDecisions = 1000

// Wanted is the number of members that a policy asks for; known is false if it selects all eligible
// ones.
func Wanted(policy *placementv1beta1.PlacementPolicy) (n int, known bool) {
	switch {
	case policy == nil:
	case policy.PlacementType == placementv1beta1.PickFixed:
		return len(policy.ClusterNames), true
	case policy.PlacementType == placementv1beta1.PickN && policy.NumberOfClusters != nil:
		return int(*policy.NumberOfClusters), true
	}
	return 0, false
}

// SelectedNamespace is the first Namespace that a placement selects by name, or "".
func SelectedNamespace(spec *placementv1beta1.PlacementSpec) string {
	for _, term := range spec.ResourceSelectors {
		if term.Group == "" && term.Version == "v1" && term.Kind == "Namespace" {
			return term.Name
		}
	}
	return ""
}
