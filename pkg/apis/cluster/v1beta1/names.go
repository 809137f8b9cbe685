// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"strings"
)

const (
	// SystemNamespace is the namespace of the gateway on the hub, and of the
	// agent on a member.
	SystemNamespace = "fleet-system"

	// MemberNamespacePrefix begins the name of every member's namespace on the
	// hub.
	MemberNamespacePrefix = "fleet-member-"

	// AgentAccount is the ServiceAccount, in the member's namespace on the hub,
	// that is the identity of the member's agent.
	AgentAccount = "agent"

	// AgentCredentialSecret is the Secret, beside AgentAccount, to which every
	// token of that account is bound: who deletes it revokes them all.
	AgentCredentialSecret = "agent-credential"

	// AgentLease is the Lease, beside AgentAccount, that the member's agent renews
	// every heartbeatPeriodSeconds. The hub makes it.
	AgentLease = "agent"

	// MaxMemberNameLength is the longest name, in characters, of a member that
	// can join: its namespace must fit the 63 characters of a DNS label.
	// Generated names keep to it; a longer hand-made MemberCluster, which the
	// schema allows up to 63, gets a condition that says so.
	MaxMemberNameLength = 63 - len(MemberNamespacePrefix)
)

const (
	// LabelMemberName is on every MemberCluster, with its own name as value, so
	// that label selectors can pick a cluster by name. The hub restores it.
	LabelMemberName = "kubernetes-fleet.io/member-name"

	// LabelFleetResource is on every member's namespace, with the value
	// LabelFleetResourceValue. The hub writes it.
	LabelFleetResource = "kubernetes-fleet.io/is-fleet-resource"

	// LabelFleetResourceValue is the one value of LabelFleetResource.
	LabelFleetResourceValue = "true"

	// LabelMember is on what the hub makes for a member (its account, Role,
	// RoleBinding and Secrets), with the member's name as value. The hub writes
	// it.
	LabelMember = "fleetgate.io/member"

	// AnnotationTokenLifetime is on the Secret AgentCredentialSecret, with a Go
	// duration as value: how long the hub lets the agent's tokens live, and so for
	// how long the agent asks. The hub writes it.
	AnnotationTokenLifetime = "fleetgate.io/token-lifetime"

	// TaintUnreachable is on a member whose agent fell silent, if the gateway is told
	// to taint such members. The hub adds and removes it.
	TaintUnreachable = "fleetgate.io/unreachable"

	// TaintUnapproved is on a member that registered with a token whose members wait
	// for approval: nothing is placed there, whatever it tolerates. The hub adds it
	// when it makes the MemberCluster; removing it is the approval.
	TaintUnapproved = "fleetgate.io/unapproved"

	// TaintCordoned is on a member that somebody has cordoned or drained: nothing new is
	// placed there that does not tolerate it. People and their tools add and remove it.
	TaintCordoned = "fleetgate.io/cordoned"

	// InfrastructurePrefix begins the labels and properties that the hub knows of a
	// member's infrastructure from others than its agent, such as Cluster API. What an
	// agent reports under such a name is left out.
	InfrastructurePrefix = "infrastructure.fleetgate.io/"

	// AnnotationProperties, on a MemberCluster and on the Cluster that it was made for,
	// holds properties whose names begin with InfrastructurePrefix, as a JSON object of
	// texts. The hub writes it.
	AnnotationProperties = "fleetgate.io/infrastructure-properties"

	// AnnotationGone, with the value "true" on a MemberCluster that is being deleted,
	// says that its cluster does not exist any more: nobody waits for its agent. The hub
	// writes it for clusters of Cluster API, an administrator for any.
	AnnotationGone = "fleetgate.io/gone"

	// AnnotationHub is on an InternalMemberCluster, with the UID of the hub's namespace
	// kube-system as value, and on what the agent keeps of a Work on the member: a member
	// can belong to several hubs. The hub writes the former, the agent the latter.
	AnnotationHub = "fleetgate.io/hub"

	// AnnotationLetGo is on a MemberCluster, with ids as value, and commas between: what the
	// member holds under these ids, since the hub went back to an earlier state, may go.
	// Condition PlacementsHeld tells the ids. An administrator writes it, and the hub copies it
	// to the InternalMemberCluster. A time in RFC 3339 is about what an agent without ids
	// held until then.
	AnnotationLetGo = "fleetgate.io/let-go"

	// AnnotationHubURL is on an InternalMemberCluster while the hub wants agents to come by
	// another way: its URL there. The hub writes it.
	AnnotationHubURL = "fleetgate.io/hub-url"

	// AnnotationHubCA is beside AnnotationHubURL: the PEM certificates that verify the hub
	// there, empty if everybody trusts it. The hub writes it.
	AnnotationHubCA = "fleetgate.io/hub-ca"

	// AnnotationFormerHub is on a MemberCluster, with the UID of the namespace kube-system of a
	// hub that is gone for good as value: what that one placed on the member is this hub's
	// now. An administrator writes it, and the hub copies it to the InternalMemberCluster.
	AnnotationFormerHub = "fleetgate.io/former-hub"

	// AnnotationAPIServer is on a MemberCluster, with host:port as value: where Konnectivity's own
	// agents find this member's API server, in place of what --konnectivity-apiserver says of
	// all. An administrator writes it.
	AnnotationAPIServer = "fleetgate.io/konnectivity-apiserver"

	// MemberClusterFinalizer holds a MemberCluster until its member has left.
	// The hub adds and removes it.
	MemberClusterFinalizer = "kubernetes-fleet.io/membercluster-finalizer"

	// ClusterProfileFinalizer holds a MemberCluster until its ClusterProfile is
	// gone. The hub adds and removes it.
	ClusterProfileFinalizer = "kubernetes-fleet.io/cluster-profile-cleanup"
)

// MemberNamespace is the member's namespace on the hub.
func MemberNamespace(member string) string { return MemberNamespacePrefix + member }

// MemberOfNamespace is the inverse of MemberNamespace: the member to whom a
// namespace on the hub belongs, and false if it is no member's.
func MemberOfNamespace(namespace string) (string, bool) {
	member, ok := strings.CutPrefix(namespace, MemberNamespacePrefix)
	if !ok || member == "" {
		return "", false
	}
	return member, true
}

// RoleName is the Role of the member's agent in the member's namespace.
func RoleName(member string) string { return "fleet-role-" + member }

// RoleBindingName is the RoleBinding that gives RoleName to the member's
// identity.
func RoleBindingName(member string) string { return "fleet-rolebinding-" + member }

const serviceAccountUserPrefix = "system:serviceaccount:"

// AgentUsername is the name by which the hub's API server knows the agent of a
// member.
func AgentUsername(member string) string {
	return serviceAccountUserPrefix + MemberNamespace(member) + ":" + AgentAccount
}

// MaxAgentEvents is how many events can be in a member's namespace at a time: the hub takes
// none there but those with a name of AgentEventName, since no quota counts events.
const MaxAgentEvents = 256

// AgentEventName is the name of one of the MaxAgentEvents events of a member's agent.
func AgentEventName(number int) string { return fmt.Sprintf("agent.%02x", number) }
