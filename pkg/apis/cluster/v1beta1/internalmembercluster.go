// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of the conditions that an agent reports: about itself ConditionJoined and
// ConditionHealthy, about its member ConditionTunnelConnected and
// ConditionNamespacesCollected.
const (
	// ReasonInternalMemberClusterJoined goes with Joined=True.
	ReasonInternalMemberClusterJoined = "InternalMemberClusterJoined"
	// ReasonInternalMemberClusterLeft goes with Joined=False.
	ReasonInternalMemberClusterLeft = "InternalMemberClusterLeft"
	// ReasonInternalMemberClusterFailedToJoin goes with Joined=Unknown.
	ReasonInternalMemberClusterFailedToJoin = "InternalMemberClusterFailedToJoin"
	// ReasonInternalMemberClusterFailedToLeave goes with Joined=Unknown.
	ReasonInternalMemberClusterFailedToLeave = "InternalMemberClusterFailedToLeave"
	// ReasonInternalMemberClusterHealthy goes with Healthy=True: the member's
	// API server is ready.
	ReasonInternalMemberClusterHealthy = "InternalMemberClusterHealthy"
	// ReasonInternalMemberClusterUnhealthy goes with Healthy=False.
	ReasonInternalMemberClusterUnhealthy = "InternalMemberClusterUnhealthy"

	// ReasonTunnelViaHub goes with TunnelConnected=True: through the hub's API server.
	ReasonTunnelViaHub = "ViaHub"
	// ReasonTunnelViaPort goes with TunnelConnected=True: straight to the gateway's own
	// port for agents.
	ReasonTunnelViaPort = "ViaPort"
	// ReasonTunnelViaKonnectivity goes with TunnelConnected=True: by the protocol of
	// Konnectivity, straight to its server.
	ReasonTunnelViaKonnectivity = "ViaKonnectivity"
	// ReasonTunnelDown goes with TunnelConnected=False.
	ReasonTunnelDown = "NotConnected"

	// ReasonNamespacesCollected goes with NamespaceCollectionSucceeded=True.
	ReasonNamespacesCollected = "Succeeded"
	// ReasonNamespacesDegraded goes with NamespaceCollectionSucceeded=False: the member has
	// more namespaces than are told.
	ReasonNamespacesDegraded = "Degraded"
	// ReasonNamespacesForbidden goes with NamespaceCollectionSucceeded=Unknown: the agent
	// may not list the member's namespaces.
	ReasonNamespacesForbidden = "NamespacesForbidden"
)

// ClusterState is what the hub wants an agent to do.
type ClusterState string

const (
	// ClusterStateJoin wants the agent to join, and to stay joined.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave wants the agent to leave; what it applied stays on the
	// member.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberCluster is the conversation of hub and agent about one member.
// It has the member's name and lives in the member's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-cluster},shortName=imc
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the hub wants of the agent. Only the hub writes it.
	Spec InternalMemberClusterSpec `json:"spec"`

	// status is what the agent reports. Only the agent writes it.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitzero"`
}

// InternalMemberClusterSpec is what the hub wants of an agent.
type InternalMemberClusterSpec struct {
	// state is Join or Leave. The schema takes any text, as the API's other
	// clients expect; an agent does nothing on one that it does not know.
	State ClusterState `json:"state"`

	// heartbeatPeriodSeconds is how often, in seconds, the agent reports. It is
	// the MemberCluster's, and defaults to 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
}

// InternalMemberClusterStatus is what an agent reports.
type InternalMemberClusterStatus struct {
	// conditions are about the member as a whole, such as the collection of its
	// properties; those of the agent are in agentStatus.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// properties are facts about the member, by name.
	// +optional
	Properties map[PropertyName]PropertyValue `json:"properties,omitempty"`

	// resourceUsage is how much CPU and memory the member has and has left.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitzero"`

	// agentStatus is what each agent of the member reported last.
	// +optional
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`

	// namespaces are the member's namespaces, each with the name of the work
	// that owns it, or with nothing. Empty if they are not collected.
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`
}

// InternalMemberClusterList is a list of InternalMemberClusters.
//
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the conversations.
	Items []InternalMemberCluster `json:"items"`
}

// AgentStatusOf returns what the agent of that type reported last, or nil if it
// has not reported.
func (s *InternalMemberClusterStatus) AgentStatusOf(agent AgentType) *AgentStatus {
	return agentStatusOf(s.AgentStatus, agent)
}
