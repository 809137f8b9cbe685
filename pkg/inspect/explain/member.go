// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// MemberFacts is what was read about a member.
type MemberFacts struct {
	Name string
	// Member is nil if the hub has no member with that name.
	Member *clusterv1beta1.MemberCluster
	// Tunnel is the gateway's status of the connection to the member; nil if it could not be read.
	Tunnel *gatewayv1alpha1.ClusterGatewayStatus
	// Cluster is the Cluster object under which the member registered, if there is one.
	Cluster *registrationv1alpha1.Cluster
	// Registrations and Tokens are all of the hub.
	Registrations []registrationv1alpha1.ClusterRegistration
	Tokens        []registrationv1alpha1.ClusterRegistrationToken
}

// checkAgentLog is the remedy if only the agent's log can tell more.
const checkAgentLog = "check the agent's log on the member cluster: kubectl logs -n fleet-system -l app=fleet-agent"

// Member returns the problems of a member, the cause first; none means that it is healthy.
func Member(f *MemberFacts) []Problem {
	if f.Member == nil {
		return f.absent()
	}
	m, object := f.Member, "member "+f.Name
	if m.DeletionTimestamp != nil {
		return []Problem{{Object: object, Reason: "the member is leaving; its agent has not confirmed yet",
			Remedy: "check that the agent runs; if the cluster no longer exists, annotate the MemberCluster with " + clusterv1beta1.AnnotationGone + "=true"}}
	}
	if !m.IsApproved() {
		return []Problem{{Object: object, Reason: "the member is waiting for approval; nothing is placed on it", Remedy: "kubectl fleetgate approve " + f.Name}}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionReadyToJoin); c != nil && c.Status != metav1.ConditionTrue {
		return []Problem{{Object: object, Reason: c.Message, Remedy: remedyOfJoin[c.Reason]}}
	}
	agent := m.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		a := Problem{Object: object, Reason: "no agent has reported for this member", Remedy: "install the agent: kubectl fleetgate join " + f.Name + " --member-context CONTEXT"}
		a.Details = f.registrationDetails()
		return []Problem{a}
	}
	return f.ofAgent(object, agent)
}

func (f *MemberFacts) ofAgent(object string, agent *clusterv1beta1.AgentStatus) []Problem {
	if joined := meta.FindStatusCondition(f.Member.Status.Conditions, clusterv1beta1.ConditionJoined); joined == nil || joined.Status != metav1.ConditionTrue {
		a := Problem{Object: object, Reason: "the member has not joined", Remedy: checkAgentLog}
		if joined != nil {
			a.Reason = joined.Message
		}
		if _, silent := f.Member.SilentSince(); silent {
			a.Remedy = "start the agent, or " + checkAgentLog
		}
		a.Details = f.registrationDetails()
		return []Problem{a}
	}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy); c != nil && c.Status != metav1.ConditionTrue {
		return []Problem{{Object: object, Reason: "the member's API server is not ready: " + c.Message, Remedy: "check the API server of the member cluster"}}
	}
	if f.Tunnel != nil && !f.Tunnel.Healthy {
		return []Problem{f.noTunnel(object, agent)}
	}
	if c := f.Member.Status.Warning(); c != nil {
		return []Problem{{Object: object, Reason: c.Message, Remedy: remedyOfWarning[c.Type]}}
	}
	if placementv1beta1.Paused(f.Member) {
		return []Problem{{Object: object, Reason: "the member is paused; its resources do not change", Remedy: "kubectl annotate membercluster " + f.Name + " " + placementv1beta1.PausedAnnotation + "-"}}
	}
	for _, taint := range f.Member.Spec.Taints {
		if taint.Key == clusterv1beta1.TaintCordoned {
			return []Problem{{Object: object, Reason: "the member is cordoned; nothing new is placed on it", Remedy: "kubectl fleetgate uncordon " + f.Name}}
		}
	}
	return nil
}

func (f *MemberFacts) noTunnel(object string, agent *clusterv1beta1.AgentStatus) Problem {
	a := Problem{Object: object, Reason: "the member is unreachable through the hub: " + string(f.Tunnel.HealthyReason), Remedy: "see docs/how-to/tunnels.md and " + checkAgentLog}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTunnelConnected); c != nil && c.Status == metav1.ConditionFalse {
		a.Reason = "the member is unreachable through the hub; its agent has no tunnel: " + c.Message
	}
	if f.Tunnel.HealthyReason == gatewayv1alpha1.HealthyReasonNoCredential {
		a.Remedy = "check its ManagedServiceAccount: kubectl describe managedserviceaccount cluster-gateway -n " + clusterv1beta1.MemberNamespace(f.Name)
	}
	return a
}

// remedyOfJoin maps reasons of condition ReadyToJoin to remedies.
var remedyOfJoin = map[string]string{
	clusterv1beta1.ReasonMemberClusterNameTooLong: "re-create the MemberCluster with a shorter name",
	"MemberClusterNameInvalid":                    "re-create the MemberCluster with a valid name",
	"NamespaceConflict":                           "wait, or delete the namespace named in the message",
	"IdentityInvalid":                             "set spec.identity to a user or a ServiceAccount",
}

const (
	remedyOfRetained = "place the resources again, or release them with the command in the message; see docs/how-to/restore.md"
	remedyOfHubURL   = "make the hub reachable under that URL, or start the gateway with the previous --hub-url; see docs/how-to/restore.md"
)

// remedyOfWarning maps condition types to remedies.
var remedyOfWarning = map[string]string{
	clusterv1beta1.ConditionPlacementsRetained: remedyOfRetained,
	clusterv1beta1.PreviousPlacementsRetained:  remedyOfRetained,
	clusterv1beta1.ConditionHubURLReachable:    remedyOfHubURL,
	clusterv1beta1.PreviousHubURLReachable:     remedyOfHubURL,
	clusterv1beta1.ConditionAgentOutdated:      "upgrade the agent; see docs/how-to/upgrade.md",
}

// absent is the answer for a name without a member: its registration may be stuck.
func (f *MemberFacts) absent() []Problem {
	object := "member " + f.Name
	if f.Cluster != nil {
		a := Problem{Object: object, Reason: fmt.Sprintf("Cluster %s in namespace %s is waiting for an agent to register", f.Cluster.Name, f.Cluster.Namespace),
			Remedy: "kubectl fleetgate join " + f.Name + " --member-context CONTEXT", Details: f.registrationDetails()}
		for _, c := range f.Cluster.Status.Conditions {
			if c.Type == registrationv1alpha1.ClusterConditionImported && string(c.Status) == string(metav1.ConditionFalse) {
				a.Reason, a.Remedy = "the import failed: "+c.Message, "correct the cause named in the message"
			}
		}
		if f.Cluster.Annotations["fleetgate.io/member-uid"] != "" {
			a.Reason = fmt.Sprintf("the member has left, and Cluster %s in namespace %s prevents it from joining again", f.Cluster.Name, f.Cluster.Namespace)
			a.Remedy = fmt.Sprintf("to allow it to join again, run kubectl annotate cluster.fleet.cattle.io -n %s %s fleetgate.io/member-uid-", f.Cluster.Namespace, f.Cluster.Name)
		}
		return []Problem{a}
	}
	if !f.tokenIsGood() {
		// Expired tokens are deleted, so an expired token shows as the absence of a valid one.
		return []Problem{{Object: object, Reason: "no cluster with this name has registered, and no registration token is valid; earlier tokens have expired or are used up",
			Remedy: "create a token: kubectl fleetgate token", Details: f.registrationDetails()}}
	}
	if details := f.registrationDetails(); len(details) > 0 {
		return []Problem{{Object: object, Reason: "no cluster with this name has registered", Remedy: "check whether one of the registrations below belongs to it", Details: details}}
	}
	return nil
}

func (f *MemberFacts) tokenIsGood() bool {
	return slices.ContainsFunc(f.Tokens, func(t registrationv1alpha1.ClusterRegistrationToken) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, registrationv1alpha1.TokenConditionReady)
	})
}

// registrationDetails lists the registrations that are not granted and the tokens that are not ready.
func (f *MemberFacts) registrationDetails() []string {
	var details []string
	for i := range f.Registrations {
		r := &f.Registrations[i]
		if c := meta.FindStatusCondition(r.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted); !r.Status.Granted && c != nil {
			details = append(details, fmt.Sprintf("registration %s/%s is not granted: %s", r.Namespace, r.Name, untrusted.Line(c.Message)))
		}
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if c := meta.FindStatusCondition(t.Status.Conditions, registrationv1alpha1.TokenConditionReady); c != nil && c.Status != metav1.ConditionTrue {
			details = append(details, fmt.Sprintf("token %s/%s is not ready: %s", t.Namespace, t.Name, untrusted.Line(c.Message)))
		}
	}
	return details
}
