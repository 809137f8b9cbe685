// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a MemberCluster. Its status has ReadyToJoin, Joined and TunnelConnected.
// NamespaceCollectionSucceeded is present if namespaces are collected, PlacementsRetained since the
// hub was first restored to an earlier state, and AgentOutdated while it applies. An agent's own
// conditions, in status.agentStatus, are only Joined and Healthy, because upstream clients compare
// all of them.
const (
	// ConditionReadyToJoin is True once everything that the member's agent needs exists on the hub,
	// and False once the member is leaving.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined is True while every expected agent of the member reports that it has joined.
	// It is Unknown until all have.
	ConditionJoined = "Joined"
	// ConditionHealthy is True while the agent reports its own cluster as healthy.
	ConditionHealthy = "Healthy"
	// ConditionTunnelConnected is True while the agent has a tunnel to a gateway. Its reason is the
	// route of the tunnel.
	ConditionTunnelConnected = "TunnelConnected"
	// ConditionNamespacesCollected is True while status.namespaces has all namespaces of the
	// member, except those being deleted. It is absent if namespaces are not collected.
	ConditionNamespacesCollected = "NamespaceCollectionSucceeded"
	// ConditionHubURLReachable is False while the agent cannot reach the hub by the URL and CA that the
	// hub requests, and continues to use the previous ones. It is absent unless the hub requests
	// such a change.
	ConditionHubURLReachable = "HubURLReachable"
	// ConditionPlacementsRetained is True while the agent retains objects that the hub does not know
	// since it was restored to an earlier state. Once set, it stays, and is False afterwards.
	ConditionPlacementsRetained = "PlacementsRetained"
	// ConditionAgentOutdated is True while the agent is more than one minor version older than the
	// gateway. Otherwise it is absent.
	ConditionAgentOutdated = "AgentOutdated"
)

// Reasons of a MemberCluster's conditions.
const (
	// ReasonMemberClusterReadyToJoin goes with ReadyToJoin=True.
	ReasonMemberClusterReadyToJoin = "MemberClusterReadyToJoin"
	// ReasonMemberClusterNotReadyToJoin goes with ReadyToJoin=False: the member
	// is leaving.
	ReasonMemberClusterNotReadyToJoin = "MemberClusterNotReadyToJoin"
	// ReasonMemberClusterNameTooLong goes with ReadyToJoin=False: the name is longer than
	// MaxMemberNameLength, so the hub cannot create a namespace for the member.
	ReasonMemberClusterNameTooLong = "MemberClusterNameTooLong"
	// ReasonMemberClusterJoined goes with Joined=True.
	ReasonMemberClusterJoined = "MemberClusterJoined"
	// ReasonMemberClusterLeft goes with Joined=False.
	ReasonMemberClusterLeft = "MemberClusterLeft"
	// ReasonMemberClusterJoinStateUnknown goes with Joined=Unknown: an expected agent has not
	// reported, or the reports of agents differ.
	ReasonMemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
	// ReasonHubURLReachable goes with HubURLReachable=True.
	ReasonHubURLReachable = "HubURLReachable"
	// ReasonHubURLUnreachable goes with HubURLReachable=False.
	ReasonHubURLUnreachable = "HubURLUnreachable"
	// ReasonHubRestored goes with PlacementsRetained=True.
	ReasonHubRestored = "HubRestored"
	// ReasonWorkReplaced goes with PlacementsRetained=True if there is no sign that the hub was
	// restored: Works have replaced other ones of the same name, for example because a member left
	// and joined again.
	ReasonWorkReplaced = "WorkReplaced"
	// ReasonNothingRetained goes with PlacementsRetained=False.
	ReasonNothingRetained = "NothingRetained"
	// ReasonAgentTooOld goes with AgentOutdated=True.
	ReasonAgentTooOld = "AgentTooOld"
)

// Reasons of the events on a MemberCluster.
const (
	EventNamespaceCreated   = "NamespaceCreated"
	EventNamespacePatched   = "NamespacePatched"
	EventRoleCreated        = "RoleCreated"
	EventRoleUpdated        = "RoleUpdated"
	EventRoleBindingCreated = "RoleBindingCreated"
	EventRoleBindingUpdated = "RoleBindingUpdated"
	// EventIdentityChanged is a warning: another subject now has the member's rights on the hub.
	EventIdentityChanged                  = "IdentityChanged"
	EventInternalMemberClusterCreated     = "InternalMemberClusterCreated"
	EventInternalMemberClusterSpecUpdated = "InternalMemberClusterSpecUpdated"
	EventMemberClusterReadyToJoin         = "MemberClusterReadyToJoin"
	EventMemberClusterJoined              = "MemberClusterJoined"
	// EventMemberClusterJoinStateUnknown is a warning.
	EventMemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
)

// IsRestless reports whether a property changes continuously. Objects derived from a member must
// not change as often, so they omit it.
func (n PropertyName) IsRestless() bool {
	return n == PropertyNodeCount || n == PropertyReadyNodeCount || n == PropertySampleNode
}

// AgentType is a kind of agent that reports for a member.
type AgentType string

const (
	// MemberAgent is the agent that every member has.
	MemberAgent AgentType = "MemberAgent"
	// MultiClusterServiceAgent belongs to a networking add-on. fleetgate does not run it, but shows
	// its reports.
	MultiClusterServiceAgent AgentType = "MultiClusterServiceAgent"
	// ServiceExportImportAgent belongs to a networking add-on. fleetgate does not run it, but shows
	// its reports.
	ServiceExportImportAgent AgentType = "ServiceExportImportAgent"
)

// Names of the properties that fleetgate's agent reports.
const (
	// PropertyNodeCount is the number of nodes, in decimal.
	PropertyNodeCount PropertyName = "kubernetes-fleet.io/node-count"
	// PropertyKubernetesVersion is the version of the member's API server, for
	// example "v1.36.3".
	PropertyKubernetesVersion PropertyName = "k8s.io/k8s-version"
	// PropertyReadyNodeCount is the number of nodes that are ready, in decimal.
	PropertyReadyNodeCount PropertyName = "fleetgate.io/ready-node-count"
	// PropertySampleNode is the name of one node.
	PropertySampleNode PropertyName = "fleetgate.io/sample-node"
	// PropertyEntrypoint is the URL at which the agent reaches the member's API server.
	PropertyEntrypoint PropertyName = "k8s.io/cluster-entrypoint"
	// PropertyCertificateAuthority is the PEM certificates that verify that server, in base64.
	PropertyCertificateAuthority PropertyName = "k8s.io/cluster-certificate-authority-data"
	// PropertyAgentVersion is the version of the member's agent, for example "v0.1.0".
	PropertyAgentVersion PropertyName = "fleetgate.io/agent-version"
	// PropertyImpersonation is how the gateway impersonates its callers on the member:
	// "constrained", or "plain" if the member's API server does not support constrained
	// impersonation.
	PropertyImpersonation PropertyName = "fleetgate.io/impersonation"
	// PropertyTunnelRight is the right on the hub by which the member's agent opens its tunnel:
	// TunnelRightNamespace or TunnelRightEither. Agents of the previous version do not report it,
	// and need a cluster-wide right.
	PropertyTunnelRight PropertyName = "fleetgate.io/tunnel-right"
	// PropertyRetained is the objects that the member retains of placements that no longer select it,
	// in JSON. The hub does not copy it to the MemberCluster, whose readers can lack the right to read
	// the placements.
	PropertyRetained PropertyName = "fleetgate.io/retained"
)

// Values of PropertyTunnelRight.
const (
	// TunnelRightNamespace is the right in the member's namespace: the agent has opened a tunnel by
	// it.
	TunnelRightNamespace = "namespace"
	// TunnelRightEither means that the agent tries both the right in the namespace and the
	// cluster-wide one.
	TunnelRightEither = "either"
)

// MemberCluster is one cluster of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-cluster},shortName=cluster
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Joined")].status`,name="Joined",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`,name="Member-Agent-Last-Seen",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.properties.kubernetes-fleet\.io/node-count.value`,name="Node-Count",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.resourceUsage.available.cpu`,name="Available-CPU",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.resourceUsage.available.memory`,name="Available-Memory",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.resourceUsage.allocatable.cpu`,name="Allocatable-CPU",priority=1,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.resourceUsage.allocatable.memory`,name="Allocatable-Memory",priority=1,type=string
// +kubebuilder:printcolumn:JSONPath=`.status.properties.fleetgate\.io/agent-version.value`,name="Agent-Version",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.properties.k8s\.io/k8s-version.value`,name="Kubernetes-Version",priority=1,type=string
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63"
// +kubebuilder:validation:XValidation:rule="(oldSelf.hasValue() && oldSelf.value().spec.identity == self.spec.identity) || !(self.spec.identity.kind == 'ServiceAccount' && has(self.spec.identity.__namespace__) && self.spec.identity.__namespace__.startsWith('fleet-member-') && self.spec.identity.__namespace__ != 'fleet-member-' + self.metadata.name)",message="the account of another member cannot be this member's identity",optionalOldSelf=true
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec MemberClusterSpec `json:"spec"`

	// status has the last reports of the member's agents and the hub's own conditions.
	// +optional
	Status MemberClusterStatus `json:"status,omitzero"`
}

// MemberClusterSpec is the desired state of a member. An administrator writes it.
type MemberClusterSpec struct {
	// identity is the user, group or service account on the hub that acts for this member. It gets
	// the member's Role in the member's namespace. A group gets the Role too, but cannot open a
	// tunnel. Users and groups with prefix "system:" belong to Kubernetes and are rejected, except
	// service accounts.
	// +kubebuilder:validation:XValidation:rule="self.kind != 'Group' || !self.name.startsWith('system:')",message="a system: group cannot be a member's identity: others are in it"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'User' || !self.name.startsWith('system:') || self.name.startsWith('system:serviceaccount:')",message="a system: user cannot be a member's identity: it is Kubernetes' own"
	Identity rbacv1.Subject `json:"identity"`

	// heartbeatPeriodSeconds is the agent's reporting interval in seconds. Default 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// taints prevent placements that do not tolerate them from picking this member. They do not
	// remove placed resources. If unset, there are none.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.key == b.key && a.effect == b.effect))",message="taints must be unique: a taint of this key and effect already exists"
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// deleteOptions set the checks before this member is deleted. If unset, Strict.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// Taint prevents placements that do not tolerate it from picking a member.
type Taint struct {
	// key of the taint, in the format of a label key. Key and effect are unique on a member.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$') && self.split('/').all(p, size(p) <= 253) && size(self.split('/')[size(self.split('/')) - 1]) <= 63",message="name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, at most 63 of them; a DNS subdomain and '/' may stand before it"
	Key string `json:"key"`

	// value of the taint, in the format of a label value; can be empty.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
	// +optional
	Value string `json:"value,omitempty"`

	// effect of the taint; only NoSchedule.
	// +kubebuilder:validation:Enum=NoSchedule
	Effect corev1.TaintEffect `json:"effect"`
}

// DeleteValidationMode is how strictly the deletion of a member is checked.
// +kubebuilder:validation:Enum=Skip;Strict
type DeleteValidationMode string

const (
	// DeleteValidationModeSkip always allows the deletion.
	DeleteValidationModeSkip DeleteValidationMode = "Skip"
	// DeleteValidationModeStrict rejects the deletion while other objects depend on the member.
	DeleteValidationModeStrict DeleteValidationMode = "Strict"
)

// DeleteOptions set the checks before a member is deleted.
type DeleteOptions struct {
	// validationMode is Strict, which rejects the deletion while other objects depend on the
	// member, or Skip, which always allows it. Default Strict.
	// +kubebuilder:default=Strict
	// +optional
	ValidationMode DeleteValidationMode `json:"validationMode,omitempty"`
}

// PropertyName is the name of a property of a member, in the format of a label key, but with any number
// of slashes.
type PropertyName string

// PropertyValue is an observed value of a property.
type PropertyValue struct {
	// value of the property. Placements can rank members only by values that are quantities.
	Value string `json:"value"`

	// observationTime is when the value was observed.
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage is the total and free resources of a member.
type ResourceUsage struct {
	// capacity is the sum over all nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of capacity that Pods can use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// available is allocatable minus the requests of the Pods.
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`

	// observationTime is when the sums were computed.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitzero"`
}

// AgentStatus is the report of one agent of a member about itself.
type AgentStatus struct {
	// type of the agent.
	Type AgentType `json:"type"`

	// conditions of the agent: Joined and Healthy.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// lastReceivedHeartbeat is the time of the last heartbeat. In a MemberCluster, by the hub's
	// clock and at most a few minutes late; in an InternalMemberCluster, the time of the agent's
	// last report by its own clock.
	// +optional
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitzero"`
}

// MemberClusterStatus is the observed state of a member.
type MemberClusterStatus struct {
	// conditions are the hub's, such as ReadyToJoin and Joined, and those that the agent reports
	// about its member.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// properties of the member, by name. Placements can select and rank by them.
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

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MemberCluster `json:"items"`
}

// IsApproved reports whether placements can use the member: it does not have the taint
// TaintUnapproved.
func (m *MemberCluster) IsApproved() bool {
	return !slices.ContainsFunc(m.Spec.Taints, func(t Taint) bool { return t.Key == TaintUnapproved })
}

// IsJoined reports whether the condition Joined is True. The gateway renews it from the agent's
// Leases, without writing each heartbeat to the status. It stays True for some minutes after the
// last heartbeat.
func (m *MemberCluster) IsJoined() bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, ConditionJoined)
}

// SilentSince returns the time of the last heartbeat, by the hub's clock, of a member that is
// disconnected: its agent has reported before, and Joined is Unknown now. It returns false for a
// member that is connected, has not reported yet or has left.
func (m *MemberCluster) SilentSince() (since metav1.Time, silent bool) {
	joined, agent := meta.FindStatusCondition(m.Status.Conditions, ConditionJoined), m.Status.AgentStatusOf(MemberAgent)
	if joined == nil || joined.Status != metav1.ConditionUnknown || agent == nil {
		return metav1.Time{}, false
	}
	if agent.LastReceivedHeartbeat.IsZero() {
		return joined.LastTransitionTime, true
	}
	return agent.LastReceivedHeartbeat, true
}

// AgentStatusOf returns the last report of the agent of that type, or nil if it has not reported.
func (s *MemberClusterStatus) AgentStatusOf(agent AgentType) *AgentStatus {
	return agentStatusOf(s.AgentStatus, agent)
}

// Warning returns the first condition that needs attention although the member works, or nil.
func (s *MemberClusterStatus) Warning() *metav1.Condition {
	for _, bad := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{ConditionPlacementsRetained, metav1.ConditionTrue},
		{PreviousPlacementsRetained, metav1.ConditionTrue},
		{ConditionHubURLReachable, metav1.ConditionFalse},
		{PreviousHubURLReachable, metav1.ConditionFalse},
		{ConditionAgentOutdated, metav1.ConditionTrue},
	} {
		if c := meta.FindStatusCondition(s.Conditions, bad.condition); c != nil && c.Status == bad.status {
			return c
		}
	}
	return nil
}

func agentStatusOf(all []AgentStatus, agent AgentType) *AgentStatus {
	for i := range all {
		if all[i].Type == agent {
			return &all[i]
		}
	}
	return nil
}
