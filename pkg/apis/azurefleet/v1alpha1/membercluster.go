// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a MemberCluster.
const (
	// ConditionHeartbeatReceived is True while the member's agent is heard of.
	ConditionHeartbeatReceived = "HeartbeatReceived"
	// ConditionJoined is True while the member's agent says that it has joined, and
	// False once the member has left.
	ConditionJoined = "Joined"
	// ConditionSynced is True once what the hub wants has been done.
	ConditionSynced = "Synced"
	// ConditionHealthy is True while the agent finds its own cluster healthy.
	ConditionHealthy = "Healthy"
)

// Reasons of the conditions.
const (
	// ReasonHeartbeatReceived goes with HeartbeatReceived=True.
	ReasonHeartbeatReceived = "InternalMemberClusterHeartbeatReceived"
	// ReasonHeartbeatUnknown goes with HeartbeatReceived=Unknown.
	ReasonHeartbeatUnknown = "InternalMemberClusterHeartbeatUnknown"
	// ReasonJoined goes with Joined=True of a MemberCluster.
	ReasonJoined = "MemberClusterJoined"
	// ReasonLeft goes with Joined=False of a MemberCluster.
	ReasonLeft = "MemberClusterLeft"
	// ReasonJoinUnknown goes with Joined=Unknown.
	ReasonJoinUnknown = "MemberClusterJoinStateUnknown"
	// ReasonConflict goes with Joined=False: a MemberCluster of the present group has
	// the name and was not made for this one.
	ReasonConflict = "MemberClusterConflict"
	// ReasonReconcileSuccess goes with Synced=True.
	ReasonReconcileSuccess = "ReconcileSuccess"
)

// ClusterState is what a member is to do.
// +kubebuilder:validation:Enum=Join;Leave
type ClusterState string

const (
	// ClusterStateJoin wants the cluster to be a member.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave wants it to leave; what was placed on it stays.
	ClusterStateLeave ClusterState = "Leave"
)

// MemberCluster is one cluster of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.state`,name="State",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Joined")].reason`,name="Joined",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the fleet's administrator wants of this member.
	Spec MemberClusterSpec `json:"spec"`

	// status is what the hub knows of it.
	// +optional
	Status MemberClusterStatus `json:"status,omitzero"`
}

// MemberClusterSpec is what the fleet's administrator wants of a member.
type MemberClusterSpec struct {
	// state is Join or Leave.
	State ClusterState `json:"state"`

	// identity is the hub's user, group or service account that may act for this
	// member.
	Identity rbacv1.Subject `json:"identity"`

	// leaseDurationSeconds is how often, in seconds, the agent is to be heard of. It
	// defaults to 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
}

// MemberClusterStatus is what the hub knows of a member.
type MemberClusterStatus struct {
	// conditions are HeartbeatReceived and Joined, and Synced once the member has left.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the sum over all nodes of the member.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of the capacity that pods may use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the members.
	Items []MemberCluster `json:"items"`
}

// InternalMemberCluster shows a member as its agent reports it. It has the member's name
// and lives in the member's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.state`,name="State",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is a copy of the MemberCluster's. The hub writes it.
	Spec InternalMemberClusterSpec `json:"spec"`

	// status is what the agent reports. The hub writes it.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitzero"`
}

// InternalMemberClusterSpec is a copy of a MemberCluster's.
type InternalMemberClusterSpec struct {
	// state is Join or Leave.
	State ClusterState `json:"state"`

	// leaseDurationSeconds is how often, in seconds, the agent is to be heard of. It
	// defaults to 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
}

// InternalMemberClusterStatus is what an agent reports.
type InternalMemberClusterStatus struct {
	// conditions are HeartbeatReceived, Synced, Joined and Healthy.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the sum over all nodes of the member.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of the capacity that pods may use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// InternalMemberClusterList is a list of InternalMemberClusters.
//
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the members.
	Items []InternalMemberCluster `json:"items"`
}
