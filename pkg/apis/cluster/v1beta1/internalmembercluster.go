// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of the conditions that an agent reports: ConditionJoined and ConditionHealthy about
// itself, ConditionTunnelConnected and ConditionNamespacesCollected about its member.
const (
	// ReasonInternalMemberClusterJoined goes with Joined=True.
	ReasonInternalMemberClusterJoined = "InternalMemberClusterJoined"
	// ReasonInternalMemberClusterLeft goes with Joined=False.
	ReasonInternalMemberClusterLeft = "InternalMemberClusterLeft"
	// ReasonInternalMemberClusterFailedToJoin goes with Joined=Unknown.
	ReasonInternalMemberClusterFailedToJoin = "InternalMemberClusterFailedToJoin"
	// ReasonInternalMemberClusterFailedToLeave goes with Joined=Unknown.
	ReasonInternalMemberClusterFailedToLeave = "InternalMemberClusterFailedToLeave"
	// ReasonInternalMemberClusterHealthy goes with Healthy=True: the member's API server is ready.
	ReasonInternalMemberClusterHealthy = "InternalMemberClusterHealthy"
	// ReasonInternalMemberClusterUnhealthy goes with Healthy=False.
	ReasonInternalMemberClusterUnhealthy = "InternalMemberClusterUnhealthy"

	// ReasonTunnelViaHub goes with TunnelConnected=True: the tunnel passes through the hub's API
	// server.
	ReasonTunnelViaHub = "ViaHub"
	// ReasonTunnelViaPort goes with TunnelConnected=True: the tunnel connects directly to the
	// gateway's own port for agents.
	ReasonTunnelViaPort = "ViaPort"
	// ReasonTunnelViaKonnectivity goes with TunnelConnected=True: the tunnel connects directly to
	// the Konnectivity server, by its protocol.
	ReasonTunnelViaKonnectivity = "ViaKonnectivity"
	// ReasonTunnelDown goes with TunnelConnected=False.
	ReasonTunnelDown = "NotConnected"

	// ReasonNamespacesCollected goes with NamespaceCollectionSucceeded=True.
	ReasonNamespacesCollected = "Succeeded"
	// ReasonNamespacesDegraded goes with NamespaceCollectionSucceeded=False: the member has more
	// namespaces than the agent reports.
	ReasonNamespacesDegraded = "Degraded"
	// ReasonNamespacesForbidden goes with NamespaceCollectionSucceeded=Unknown: RBAC forbids the
	// agent to list the member's namespaces.
	ReasonNamespacesForbidden = "NamespacesForbidden"
)

// ClusterState is what the hub requests from an agent.
type ClusterState string

const (
	// ClusterStateJoin requests to join, and to stay joined.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave requests to leave. Applied resources stay on the member.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberCluster carries requests of the hub to a member's agent, and the agent's reports.
// It has the member's name and is in the member's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-cluster},shortName=imc
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type InternalMemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the hub requests. Only the hub writes it.
	Spec InternalMemberClusterSpec `json:"spec"`

	// status is what the agent reports. Only the agent writes it.
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitzero"`
}

// InternalMemberClusterSpec is what the hub requests from an agent.
type InternalMemberClusterSpec struct {
	// state is Join or Leave. The schema accepts any string, as upstream clients expect; an agent
	// ignores unknown values.
	State ClusterState `json:"state"`

	// heartbeatPeriodSeconds is the agent's reporting interval in seconds, copied from the
	// MemberCluster. Default 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
}

// InternalMemberClusterStatus is what an agent reports.
type InternalMemberClusterStatus struct {
	// conditions of the member, such as whether its properties were collected. Conditions of the
	// agent are in agentStatus.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// properties of the member, by name.
	// +optional
	Properties map[PropertyName]PropertyValue `json:"properties,omitempty"`

	// resourceUsage is the total and free CPU and memory of the member.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitzero"`

	// agentStatus is the last report of each agent of the member.
	// +optional
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`

	// namespaces are the member's namespaces, each with the name of the Work that owns it, or
	// empty. Unset if they are not collected.
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`
}

// InternalMemberClusterList is a list of InternalMemberClusters.
//
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InternalMemberCluster `json:"items"`
}

// AgentStatusOf returns the last report of the agent of that type, or nil if it has not reported.
func (s *InternalMemberClusterStatus) AgentStatusOf(agent AgentType) *AgentStatus {
	return agentStatusOf(s.AgentStatus, agent)
}
