// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// MemberFacts are what was read about a member.
type MemberFacts struct {
	Name string
	// Member is nil if the hub has none of that name.
	Member *clusterv1beta1.MemberCluster
	// Tunnel is what the gateway says of the way in; nil if it could not be asked.
	Tunnel *gatewayv1alpha1.ClusterGatewayStatus
	// Cluster is the registration's object of that name, if there is one.
	Cluster *registrationv1alpha1.Cluster
	// Registrations and Tokens are those of the hub.
	Registrations []registrationv1alpha1.ClusterRegistration
	Tokens        []registrationv1alpha1.ClusterRegistrationToken
}

// Member returns what is wrong with a member, the cause first; none means that it is well.
func Member(f *MemberFacts) []Answer {
	if f.Member == nil {
		return f.absent()
	}
	m, object := f.Member, "member "+f.Name
	if m.DeletionTimestamp != nil {
		return []Answer{{Object: object, Reason: "it leaves, and its agent has to take away what was placed first",
			Remedy: "see that the agent runs; if the cluster does not exist any more, annotate the MemberCluster with " + clusterv1beta1.AnnotationGone + "=true"}}
	}
	if !m.IsApproved() {
		return []Answer{{Object: object, Reason: "nobody has approved it, so nothing is placed there", Remedy: "kubectl fleetgate approve " + f.Name}}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionReadyToJoin); c != nil && c.Status != metav1.ConditionTrue {
		return []Answer{{Object: object, Reason: c.Message, Remedy: remedyOfJoin[c.Reason]}}
	}
	agent := m.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		a := Answer{Object: object, Reason: "no agent has ever reported for it", Remedy: "install one: kubectl fleetgate join " + f.Name + " --member-context CONTEXT"}
		a.Details = f.registrationDetails()
		return []Answer{a}
	}
	return f.ofAgent(object, agent)
}

func (f *MemberFacts) ofAgent(object string, agent *clusterv1beta1.AgentStatus) []Answer {
	const logs = "kubectl logs -n fleet-system -l app=fleet-agent, on the member itself"
	if joined := meta.FindStatusCondition(f.Member.Status.Conditions, clusterv1beta1.ConditionJoined); joined == nil || joined.Status != metav1.ConditionTrue {
		a := Answer{Object: object, Reason: "it has not joined", Remedy: "see what its agent says: " + logs}
		if joined != nil {
			a.Reason = joined.Message
		}
		if _, silent := f.Member.SilentSince(); silent {
			a.Remedy = "start its agent, or see what it says: " + logs
		}
		a.Details = f.registrationDetails()
		return []Answer{a}
	}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy); c != nil && c.Status != metav1.ConditionTrue {
		return []Answer{{Object: object, Reason: "its API server is not ready: " + c.Message, Remedy: "look at the member's API server"}}
	}
	if f.Tunnel != nil && !f.Tunnel.Healthy {
		return []Answer{f.noTunnel(object, agent)}
	}
	if c := f.Member.Status.Warning(); c != nil {
		return []Answer{{Object: object, Reason: c.Message, Remedy: remedyOfWarning[c.Type]}}
	}
	if placementv1beta1.Paused(f.Member) {
		return []Answer{{Object: object, Reason: "it is paused, nothing on it changes", Remedy: "kubectl annotate membercluster " + f.Name + " " + placementv1beta1.PausedAnnotation + "-"}}
	}
	for _, taint := range f.Member.Spec.Taints {
		if taint.Key == clusterv1beta1.TaintCordoned {
			return []Answer{{Object: object, Reason: "it is cordoned, nothing new is placed there", Remedy: "kubectl fleetgate uncordon " + f.Name}}
		}
	}
	return nil
}

func (f *MemberFacts) noTunnel(object string, agent *clusterv1beta1.AgentStatus) Answer {
	a := Answer{Object: object, Reason: "nobody reaches it through the hub: " + string(f.Tunnel.HealthyReason), Remedy: "see docs/tunnels.md: kubectl logs -n fleet-system -l app=fleet-agent, on the member itself"}
	if c := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionTunnelConnected); c != nil && c.Status == metav1.ConditionFalse {
		a.Reason = "nobody reaches it through the hub, its agent has no tunnel: " + c.Message
	}
	if f.Tunnel.HealthyReason == gatewayv1alpha1.HealthyReasonNoCredential {
		a.Remedy = "see its ManagedServiceAccount: kubectl describe managedserviceaccount cluster-gateway -n " + clusterv1beta1.MemberNamespace(f.Name)
	}
	return a
}

// remedyOfJoin is by the reason of condition ReadyToJoin.
var remedyOfJoin = map[string]string{
	clusterv1beta1.ReasonMemberClusterNameTooLong: "make it anew with a shorter name",
	"MemberClusterNameInvalid":                    "make it anew with another name",
	"NamespaceConflict":                           "wait, or remove the namespace that is named",
	"IdentityInvalid":                             "name a user or an account in spec.identity",
}

// remedyOfWarning is by the condition's type.
var remedyOfWarning = map[string]string{
	clusterv1beta1.ConditionPlacementsHeld: "see docs/restore.md: place them again, or let them go with the command in the message",
	clusterv1beta1.ConditionHubFollowed:    "see docs/restore.md: make the hub reachable there, or start the gateway with the former --hub-url",
	clusterv1beta1.ConditionAgentOutdated:  "see docs/agents.md: upgrade its agent",
}

// absent is the answer for a name that no member has: its registration may be stuck.
func (f *MemberFacts) absent() []Answer {
	object := "member " + f.Name
	if f.Cluster != nil {
		a := Answer{Object: object, Reason: fmt.Sprintf("Cluster %s waits in namespace %s for an agent that registers", f.Cluster.Name, f.Cluster.Namespace),
			Remedy: "kubectl fleetgate join " + f.Name + " --member-context CONTEXT", Details: f.registrationDetails()}
		for _, c := range f.Cluster.Status.Conditions {
			if c.Type == registrationv1alpha1.ClusterConditionImported && string(c.Status) == string(metav1.ConditionFalse) {
				a.Reason, a.Remedy = "it could not be imported: "+c.Message, "correct what the message names"
			}
		}
		if f.Cluster.Annotations["fleetgate.io/member-uid"] != "" {
			a.Reason = fmt.Sprintf("it has left, and Cluster %s in namespace %s keeps it from joining again", f.Cluster.Name, f.Cluster.Namespace)
			a.Remedy = fmt.Sprintf("to let it join again: kubectl annotate cluster.fleet.cattle.io -n %s %s fleetgate.io/member-uid-", f.Cluster.Namespace, f.Cluster.Name)
		}
		return []Answer{a}
	}
	if !f.tokenIsGood() {
		// An expired token is deleted: what is left of it is that there is none.
		return []Answer{{Object: object, Reason: "no cluster of that name has registered, and no registration token is valid: those that there were have expired, or are used up",
			Remedy: "make another: kubectl fleetgate token", Details: f.registrationDetails()}}
	}
	if details := f.registrationDetails(); len(details) > 0 {
		return []Answer{{Object: object, Reason: "no cluster of that name has registered", Remedy: "see which registration below is its", Details: details}}
	}
	return nil
}

func (f *MemberFacts) tokenIsGood() bool {
	return slices.ContainsFunc(f.Tokens, func(t registrationv1alpha1.ClusterRegistrationToken) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, registrationv1alpha1.TokenConditionReady)
	})
}

// registrationDetails are the registrations and tokens that do not go on.
func (f *MemberFacts) registrationDetails() []string {
	var details []string
	for i := range f.Registrations {
		r := &f.Registrations[i]
		if c := meta.FindStatusCondition(r.Status.Conditions, registrationv1alpha1.RegistrationConditionGranted); !r.Status.Granted && c != nil {
			details = append(details, fmt.Sprintf("registration %s/%s is not granted: %s", r.Namespace, r.Name, Plain(c.Message)))
		}
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if c := meta.FindStatusCondition(t.Status.Conditions, registrationv1alpha1.TokenConditionReady); c != nil && c.Status != metav1.ConditionTrue {
			details = append(details, fmt.Sprintf("token %s/%s is not ready: %s", t.Namespace, t.Name, Plain(c.Message)))
		}
	}
	return details
}
