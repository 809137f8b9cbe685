// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Decision is the decision about a request of a klusterlet.
type Decision int

const (
	// Wait leaves the request to a person: clusteradm accept, or kubectl certificate approve.
	Wait Decision = iota
	// Renew approves, if the requester has permission to renew certificates, as agents have.
	Renew
	// Admit approves the first certificate of a cluster.
	Admit
	// Warn leaves the request to a person, with a warning of a possible theft.
	Warn
)

// ClusterState is what the hub knows about the requested cluster.
type ClusterState struct {
	// Known is true if its ManagedCluster exists and is not being deleted.
	Known bool
	// Denied is true if an administrator accepted it once and revoked that.
	Denied bool
	// Key is the fingerprint of the key with which its agent was admitted; empty if none was.
	Key string
	// Joined is true if an agent has reported as this cluster.
	Joined bool
	// Account is the account of our agent on a member. If unset, the cluster is no member.
	Account string
}

// Decide decides about a request that follows the contract. Clusters of users are admitted
// automatically.
//
// Everybody with permission to request a cluster may use any name, and only the user name
// distinguishes them. Therefore a request of a user that is not the cluster's agent yet is admitted
// only once, and never for another key. Our agent on a member uses its own account, for one name,
// and nobody else is admitted instead, not even before it has connected. Its certificate renews
// nothing: without its account, an agent has the certificate only until that expires.
func Decide(request Request, cluster ClusterState, users []string) (Decision, *refusal.Refusal) {
	trusted := slices.Contains(users, request.Requester)
	own := request.Requester == request.CommonName()
	switch {
	case own && request.Agent == clusterv1.AgentName:
		return Warn, refusal.New(ReasonRenewalForbidden,
			"%q renews its own certificate: the agent of a member requests it with its account; if that was revoked, delete the request", request.Requester)
	case own:
		return Renew, nil
	case cluster.Account != "" && request.Requester == cluster.Account && request.Agent == clusterv1.AgentName:
		return ofMember(request)
	case !cluster.Known || cluster.Denied:
		return Wait, nil
	case trusted && cluster.Key == request.Key && cluster.Account == "":
		return Admit, nil
	case cluster.Key != "" || cluster.Joined || cluster.Account != "":
		return Warn, refusal.New(ReasonKeyConflict,
			"cluster %q already has an agent, and %q requests a certificate for another key: if that is the key of the cluster, approve the request with kubectl certificate approve, or delete the ManagedCluster before the cluster joins again",
			request.Cluster, request.Requester)
	case trusted:
		return Admit, nil
	}
	return Wait, nil
}

// ofMember decides about a request of a member's account for the certificate of its agent, which
// must not outlive the account for long.
func ofMember(request Request) (Decision, *refusal.Refusal) {
	if request.Lifetime <= 0 || request.Lifetime > clusterv1.MaxAgentCertificateLife {
		return Warn, refusal.New(ReasonRenewalForbidden,
			"%q requests a certificate for longer than %s, or for no stated time, which the agent of a member does not: find out who made the request, and delete it",
			request.Requester, clusterv1.MaxAgentCertificateLife)
	}
	return Renew, nil
}
