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

	// MemberNamespacePrefix is the prefix of every member's namespace on the hub.
	MemberNamespacePrefix = "fleet-member-"

	// AgentAccount is the ServiceAccount of the member's agent, in the member's namespace on the
	// hub.
	AgentAccount = "agent"

	// AgentCredentialSecret is the Secret, in the namespace of AgentAccount, to which all tokens of
	// that account are bound. Deleting it revokes all of them.
	AgentCredentialSecret = "agent-credential"

	// AgentLease is the Lease, in the namespace of AgentAccount, that the member's agent renews
	// every heartbeatPeriodSeconds. The hub creates it.
	AgentLease = "agent"

	// MaxMemberNameLength is the maximum length, in characters, of the name of a member that can
	// join: its namespace must fit into the 63 characters of a DNS label. Generated names respect
	// it. The schema allows up to 63; a MemberCluster with a longer name has the condition
	// ReadyToJoin=False.
	MaxMemberNameLength = 63 - len(MemberNamespacePrefix)
)

const (
	// LabelMemberName is on every MemberCluster, with its name as value, so that label selectors
	// can select a cluster by name. The hub restores it.
	LabelMemberName = "kubernetes-fleet.io/member-name"

	// LabelFleetResource is on every member's namespace, with the value LabelFleetResourceValue.
	// The hub writes it.
	LabelFleetResource = "kubernetes-fleet.io/is-fleet-resource"

	// LabelFleetResourceValue is the only value of LabelFleetResource.
	LabelFleetResourceValue = "true"

	// LabelMember is on the objects that the hub creates for a member (its account, Role,
	// RoleBinding and Secrets), with the member's name as value. The hub writes it.
	LabelMember = "fleetgate.io/member"

	// AnnotationTokenLifetime is on the Secret AgentCredentialSecret, with a Go duration as value:
	// the maximum lifetime of the agent's tokens, which the agent then requests. The hub writes it.
	AnnotationTokenLifetime = "fleetgate.io/token-lifetime"

	// TaintUnreachable is on a member whose agent is disconnected, if the gateway is configured to
	// taint such members. The hub adds and removes it.
	TaintUnreachable = "fleetgate.io/unreachable"

	// TaintUnapproved is on a member that registered with a token whose members need approval.
	// Nothing is placed there, even with a toleration. The hub adds it when it creates the
	// MemberCluster. Removing it is the approval.
	TaintUnapproved = "fleetgate.io/unapproved"

	// TaintCordoned is on a member that a user has cordoned or drained. New resources are placed
	// there only with a toleration. Users and their tools add and remove it.
	TaintCordoned = "fleetgate.io/cordoned"

	// InfrastructurePrefix is the prefix of labels and properties about a member's infrastructure
	// that the hub gets from other sources than the agent, such as Cluster API. The hub ignores
	// such names in an agent's report.
	InfrastructurePrefix = "infrastructure.fleetgate.io/"

	// AnnotationProperties is on a MemberCluster and on the Cluster for which it was created. Its
	// value is a JSON object of strings: properties with InfrastructurePrefix. The hub writes it.
	AnnotationProperties = "fleetgate.io/infrastructure-properties"

	// AnnotationGone with the value "true" on a MemberCluster that is being deleted means that
	// its cluster no longer exists, so the hub does not wait for its agent. The hub writes it for
	// clusters of Cluster API, an administrator for any.
	AnnotationGone = "fleetgate.io/gone"

	// AnnotationHub is on an InternalMemberCluster, written by the hub, and on the agent's records
	// of a Work on the member, written by the agent. Its value is the UID of the hub's namespace
	// kube-system. It distinguishes the hubs of a member that belongs to several.
	AnnotationHub = "fleetgate.io/hub"

	// AnnotationRelease is on a MemberCluster. Its value is ids, separated by commas, that the
	// condition PlacementsRetained reports: objects that the member retains under these ids, since the
	// hub was restored to an earlier state, are released. An administrator writes it, and the hub
	// copies it to the InternalMemberCluster. A time in RFC 3339 releases what an agent that does
	// not support ids retained until then.
	AnnotationRelease = "fleetgate.io/release"

	// DeprecatedAnnotationLetGo is the previous key of AnnotationRelease. The hub still reads it on
	// a MemberCluster and writes it to the InternalMemberCluster, since an agent of the previous
	// version reports it in its condition and reads no other.
	// Remove after the next release.
	DeprecatedAnnotationLetGo = "fleetgate.io/let-go"

	// AnnotationHubURL is on an InternalMemberCluster while the hub requests that agents use
	// another URL. Its value is that URL. The hub writes it.
	AnnotationHubURL = "fleetgate.io/hub-url"

	// AnnotationHubCA goes with AnnotationHubURL. Its value is the PEM certificates that verify the
	// hub at that URL; empty for a publicly trusted certificate. The hub writes it.
	AnnotationHubCA = "fleetgate.io/hub-ca"

	// AnnotationFormerHub is on a MemberCluster. Its value is the UID of the namespace kube-system
	// of a hub that no longer exists. This hub takes over the resources that the former hub placed
	// on the member. An administrator writes it, and the hub copies it to the
	// InternalMemberCluster.
	AnnotationFormerHub = "fleetgate.io/former-hub"

	// AnnotationAPIServer is on a MemberCluster, with host:port as value: where Konnectivity agents
	// reach this member's API server. It overrides tunnels.konnectivity.apiServer. An administrator
	// writes it.
	AnnotationAPIServer = "fleetgate.io/konnectivity-apiserver"

	// MemberClusterFinalizer keeps a deleted MemberCluster until its member has left. The hub adds
	// and removes it.
	MemberClusterFinalizer = "kubernetes-fleet.io/membercluster-finalizer"

	// ClusterProfileFinalizer keeps a deleted MemberCluster until its ClusterProfile is gone. The
	// hub adds and removes it.
	ClusterProfileFinalizer = "kubernetes-fleet.io/cluster-profile-cleanup"
)

// MemberNamespace returns the member's namespace on the hub.
func MemberNamespace(member string) string { return MemberNamespacePrefix + member }

// MemberOfNamespace is the inverse of MemberNamespace: it returns the member of a namespace on the
// hub, and false if the namespace belongs to no member.
func MemberOfNamespace(namespace string) (string, bool) {
	member, ok := strings.CutPrefix(namespace, MemberNamespacePrefix)
	if !ok || member == "" {
		return "", false
	}
	return member, true
}

// RoleName returns the name of the agent's Role in the member's namespace.
func RoleName(member string) string { return "fleet-role-" + member }

// RoleBindingName returns the name of the RoleBinding that grants RoleName to the member's
// identity.
func RoleBindingName(member string) string { return "fleet-rolebinding-" + member }

const serviceAccountUserPrefix = "system:serviceaccount:"

// AgentUsername returns the agent's username on the hub's API server.
func AgentUsername(member string) string {
	return serviceAccountUserPrefix + MemberNamespace(member) + ":" + AgentAccount
}

// MaxAgentEvents limits the events in a member's namespace. The hub accepts only events with a name
// of AgentEventName there, because no quota counts events.
const MaxAgentEvents = 256

// AgentEventName returns the name of one of the MaxAgentEvents events of a member's agent.
func AgentEventName(number int) string { return fmt.Sprintf("agent.%02x", number) }
