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

// Condition types of a MemberCluster. Its status shows ReadyToJoin, Joined,
// TunnelConnected, where namespaces are collected NamespaceCollectionSucceeded, after its
// hub went back PlacementsHeld, and AgentOutdated; an agent's own conditions, in status.agentStatus, are Joined and
// Healthy and no others, since clients compare all of them.
const (
	// ConditionReadyToJoin is True once all that the member's agent needs is in
	// place on the hub, and False once the member is leaving.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined is True while every expected agent of the member says that
	// it has joined, Unknown until they all have.
	ConditionJoined = "Joined"
	// ConditionHealthy is True while the agent finds its own cluster healthy.
	ConditionHealthy = "Healthy"
	// ConditionTunnelConnected is True while the agent holds a tunnel to a gateway; its
	// reason says which way that goes.
	ConditionTunnelConnected = "TunnelConnected"
	// ConditionNamespacesCollected is True while status.namespaces are all that the member
	// has, but for those that are going. Without it they are not collected.
	ConditionNamespacesCollected = "NamespaceCollectionSucceeded"
	// ConditionHubFollowed is False while the agent cannot reach the hub by the URL and CA that
	// the hub wants it to, and stays with the former. It is there while the hub wants that.
	ConditionHubFollowed = "HubFollowed"
	// ConditionPlacementsHeld is True while objects stay on the member that the hub does not
	// know of since it went back to an earlier state. It is there from the first time on.
	ConditionPlacementsHeld = "PlacementsHeld"
	// ConditionAgentOutdated is True while the agent is more than one minor version older than
	// the gateway, and not there otherwise.
	ConditionAgentOutdated = "AgentOutdated"
)

// Reasons of a MemberCluster's conditions.
const (
	// ReasonMemberClusterReadyToJoin goes with ReadyToJoin=True.
	ReasonMemberClusterReadyToJoin = "MemberClusterReadyToJoin"
	// ReasonMemberClusterNotReadyToJoin goes with ReadyToJoin=False: the member
	// is leaving.
	ReasonMemberClusterNotReadyToJoin = "MemberClusterNotReadyToJoin"
	// ReasonMemberClusterNameTooLong goes with ReadyToJoin=False: the name does
	// not fit MaxMemberNameLength, so the member can have no namespace.
	ReasonMemberClusterNameTooLong = "MemberClusterNameTooLong"
	// ReasonMemberClusterJoined goes with Joined=True.
	ReasonMemberClusterJoined = "MemberClusterJoined"
	// ReasonMemberClusterLeft goes with Joined=False.
	ReasonMemberClusterLeft = "MemberClusterLeft"
	// ReasonMemberClusterJoinStateUnknown goes with Joined=Unknown: an expected
	// agent has not reported, or agents differ.
	ReasonMemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
	// ReasonHubReached goes with HubFollowed=True.
	ReasonHubReached = "HubReached"
	// ReasonHubNotReached goes with HubFollowed=False.
	ReasonHubNotReached = "HubNotReached"
	// ReasonHubWentBack goes with PlacementsHeld=True.
	ReasonHubWentBack = "HubWentBack"
	// ReasonAnotherWork goes with PlacementsHeld=True where the hub did not go back as far as can
	// be seen: Works have come in the place of others, as when a member leaves and joins again.
	ReasonAnotherWork = "AnotherWork"
	// ReasonNothingHeld goes with PlacementsHeld=False.
	ReasonNothingHeld = "NothingHeld"
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
	// EventIdentityChanged is a warning: another subject has the member's rights on the hub.
	EventIdentityChanged                  = "IdentityChanged"
	EventInternalMemberClusterCreated     = "InternalMemberClusterCreated"
	EventInternalMemberClusterSpecUpdated = "InternalMemberClusterSpecUpdated"
	EventMemberClusterReadyToJoin         = "MemberClusterReadyToJoin"
	EventMemberClusterJoined              = "MemberClusterJoined"
	// EventMemberClusterJoinStateUnknown is a warning.
	EventMemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
)

// IsRestless reports whether a property changes by itself, all the time: what is made of a
// member shall not change as often.
func (n PropertyName) IsRestless() bool {
	return n == PropertyNodeCount || n == PropertyReadyNodeCount || n == PropertySampleNode
}

// AgentType names a kind of agent that reports for a member.
type AgentType string

const (
	// MemberAgent is the agent that every member has.
	MemberAgent AgentType = "MemberAgent"
	// MultiClusterServiceAgent belongs to a networking add-on; fleetgate runs
	// none, but shows what one reports.
	MultiClusterServiceAgent AgentType = "MultiClusterServiceAgent"
	// ServiceExportImportAgent belongs to a networking add-on; fleetgate runs
	// none, but shows what one reports.
	ServiceExportImportAgent AgentType = "ServiceExportImportAgent"
)

// Property names that fleetgate reports by itself.
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
	// PropertyEntrypoint is the URL of the member's API server as its agent reaches it.
	PropertyEntrypoint PropertyName = "k8s.io/cluster-entrypoint"
	// PropertyCertificateAuthority are the PEM certificates that verify that server,
	// in base64.
	PropertyCertificateAuthority PropertyName = "k8s.io/cluster-certificate-authority-data"
	// PropertyAgentVersion is the version of the member's agent, for example "v0.1.0".
	PropertyAgentVersion PropertyName = "fleetgate.io/agent-version"
	// PropertyImpersonation is how the gateway acts as its callers on the member:
	// "constrained", or "plain" where the member's API server does not constrain
	// impersonation.
	PropertyImpersonation PropertyName = "fleetgate.io/impersonation"
	// PropertyTunnelRight is by which right on the hub the member's agent opens its tunnel:
	// TunnelRightNamespace or TunnelRightEither. Agents of before do not report it, and need
	// one of the whole hub.
	PropertyTunnelRight PropertyName = "fleetgate.io/tunnel-right"
)

// Values of PropertyTunnelRight.
const (
	// TunnelRightNamespace is the one in the member's namespace: the agent has opened a tunnel
	// by it.
	TunnelRightNamespace = "namespace"
	// TunnelRightEither is that one, or that of the whole hub: the agent tries both.
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

	// spec is what the fleet's administrator wants of this member.
	Spec MemberClusterSpec `json:"spec"`

	// status is what the member's agents reported last, and what the hub makes
	// of it.
	// +optional
	Status MemberClusterStatus `json:"status,omitzero"`
}

// MemberClusterSpec is what the fleet's administrator wants of a member.
type MemberClusterSpec struct {
	// identity is the hub's user, group or service account that may act for
	// this member: it gets the member's Role in the member's namespace. A group
	// gets the Role too, but cannot open a tunnel. Users and groups that begin with
	// "system:" are Kubernetes' own, and no member's.
	// +kubebuilder:validation:XValidation:rule="self.kind != 'Group' || !self.name.startsWith('system:')",message="a system: group cannot be a member's identity: others are in it"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'User' || !self.name.startsWith('system:') || self.name.startsWith('system:serviceaccount:')",message="a system: user cannot be a member's identity: it is Kubernetes' own"
	Identity rbacv1.Subject `json:"identity"`

	// heartbeatPeriodSeconds is how often, in seconds, the agent reports. It
	// defaults to 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// taints keep placements that do not tolerate them from picking this member.
	// They never remove what is already placed. Empty means none.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.key == b.key && a.effect == b.effect))",message="taints must be unique: a taint of this key and effect already exists"
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// deleteOptions say what is checked before this member may be deleted. Empty
	// means the strictest.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// Taint marks a member so that only placements that tolerate it pick it.
type Taint struct {
	// key is the taint's name, a qualified name as for labels. With its effect
	// it is unique on a member.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$') && self.split('/').all(p, size(p) <= 253) && size(self.split('/')[size(self.split('/')) - 1]) <= 63",message="name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character, at most 63 of them; a DNS subdomain and '/' may stand before it"
	Key string `json:"key"`

	// value is the taint's value, of the form of a label's value. It may be
	// empty.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
	// +optional
	Value string `json:"value,omitempty"`

	// effect is what the taint does; NoSchedule is the only one.
	// +kubebuilder:validation:Enum=NoSchedule
	Effect corev1.TaintEffect `json:"effect"`
}

// DeleteValidationMode says how strictly the deletion of a member is checked.
// +kubebuilder:validation:Enum=Skip;Strict
type DeleteValidationMode string

const (
	// DeleteValidationModeSkip lets a member go whatever is left of it.
	DeleteValidationModeSkip DeleteValidationMode = "Skip"
	// DeleteValidationModeStrict refuses to delete a member on which others
	// still depend.
	DeleteValidationModeStrict DeleteValidationMode = "Strict"
)

// DeleteOptions say what is checked before a member may be deleted.
type DeleteOptions struct {
	// validationMode is Strict, the default, to refuse while others depend on
	// the member, or Skip to delete in any case.
	// +kubebuilder:default=Strict
	// +optional
	ValidationMode DeleteValidationMode `json:"validationMode,omitempty"`
}

// PropertyName is the name of a property of a member: a qualified name as for
// labels.
type PropertyName string

// PropertyValue is one property, as it was observed.
type PropertyValue struct {
	// value is the property's value; a placement can order members only by those
	// that read as quantities.
	Value string `json:"value"`

	// observationTime is when the value was observed.
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage is how much a member has, and how much of it is left.
type ResourceUsage struct {
	// capacity is the sum over all nodes.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of the capacity that pods may use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// available is the allocatable part less what the pods there request.
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`

	// observationTime is when the sums were made.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitzero"`
}

// AgentStatus is what one agent of a member reports about itself.
type AgentStatus struct {
	// type says which agent this is.
	Type AgentType `json:"type"`

	// conditions are the agent's own: Joined and Healthy.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// lastReceivedHeartbeat is when the agent was last heard of: in a MemberCluster by
	// the hub's clock and a few minutes late at most, in an InternalMemberCluster when
	// the agent last reported, by its own clock.
	// +optional
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitzero"`
}

// MemberClusterStatus is what the hub knows of a member.
type MemberClusterStatus struct {
	// conditions are the hub's own, ReadyToJoin and Joined, and those that the
	// agent reports beyond its own two.
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// properties are facts about the member, by name, that placements can
	// select and sort by.
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

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the members.
	Items []MemberCluster `json:"items"`
}

// IsApproved tells whether something may be placed on the member: it is not tainted
// as waiting for approval.
func (m *MemberCluster) IsApproved() bool {
	return !slices.ContainsFunc(m.Spec.Taints, func(t Taint) bool { return t.Key == TaintUnapproved })
}

// IsJoined reports whether the hub says of the member that it is joined. While it does, its
// gateway keeps hearing of the agent, by Leases of which not each is worth a write of the
// heartbeat that the member shows; it says so for some minutes after the last.
func (m *MemberCluster) IsJoined() bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, ConditionJoined)
}

// SilentSince is when the hub heard last, by its own clock, of a member of which it does not
// know any more whether it is joined, though it has reported: nothing is heard of its agent.
// A member that is heard, has yet to report or has left is not silent.
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

// AgentStatusOf returns what the agent of that type reported last, or nil if it
// has not reported.
func (s *MemberClusterStatus) AgentStatusOf(agent AgentType) *AgentStatus {
	return agentStatusOf(s.AgentStatus, agent)
}

// Warning is the first condition that says that somebody is to look at the member although it
// works; nil if none does.
func (s *MemberClusterStatus) Warning() *metav1.Condition {
	for _, bad := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{ConditionPlacementsHeld, metav1.ConditionTrue},
		{ConditionHubFollowed, metav1.ConditionFalse},
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
