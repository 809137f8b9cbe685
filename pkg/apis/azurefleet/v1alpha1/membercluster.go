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
	// ConditionHeartbeatReceived is True while the member's agent sends heartbeats.
	ConditionHeartbeatReceived = "HeartbeatReceived"
	// ConditionJoined is True while the member's agent reports that it has joined, and False once
	// the member has left.
	ConditionJoined = "Joined"
	// ConditionSynced is True once the requested state is reached.
	ConditionSynced = "Synced"
	// ConditionHealthy is True while the agent reports its own cluster as healthy.
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
	// ReasonConflict goes with Joined=False: a MemberCluster of the current group has the name and
	// was not created for this one.
	ReasonConflict = "MemberClusterConflict"
	// ReasonReconcileSuccess goes with Synced=True.
	ReasonReconcileSuccess = "ReconcileSuccess"
)

// ClusterState is the desired state of a member.
// +kubebuilder:validation:Enum=Join;Leave
type ClusterState string

const (
	// ClusterStateJoin requests the cluster to be a member.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave requests it to leave. Placed resources stay on it.
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

	// spec is the desired state.
	Spec MemberClusterSpec `json:"spec"`

	// status is the observed state.
	// +optional
	Status MemberClusterStatus `json:"status,omitzero"`
}

// MemberClusterSpec is the desired state of a member.
type MemberClusterSpec struct {
	// state is Join or Leave.
	State ClusterState `json:"state"`

	// identity is the user, group or service account on the hub that acts for this member.
	Identity rbacv1.Subject `json:"identity"`

	// leaseDurationSeconds is the heartbeat interval of the agent in seconds. Default 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds,omitempty"`
}

// MemberClusterStatus is the observed state of a member.
type MemberClusterStatus struct {
	// conditions are HeartbeatReceived and Joined, and Synced once the member has left.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// capacity is the sum over all nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of capacity that Pods can use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MemberCluster `json:"items"`
}

// InternalMemberCluster shows what a member's agent reports. It has the member's name and is in the
// member's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.state`,name="State",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is copied from the MemberCluster. The hub writes it.
	Spec InternalMemberClusterSpec `json:"spec"`

	// status is what the agent reports. The hub writes it.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitzero"`
}

// InternalMemberClusterSpec is copied from a MemberCluster.
type InternalMemberClusterSpec struct {
	// state is Join or Leave.
	State ClusterState `json:"state"`

	// leaseDurationSeconds is the heartbeat interval of the agent in seconds. Default 60.
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

	// capacity is the sum over all nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of capacity that Pods can use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
}

// InternalMemberClusterList is a list of InternalMemberClusters.
//
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InternalMemberCluster `json:"items"`
}
