// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Answer is the decision about a request of a klusterlet.
type Answer int

const (
	// Wait leaves the request to a person: clusteradm accept, or kubectl certificate approve.
	Wait Answer = iota
	// Renew approves, if the requester has permission to renew certificates, as agents have.
	Renew
	// Admit approves the first certificate of a cluster.
	Admit
	// Warn leaves the request to a person, with a warning of a possible theft.
	Warn
)

// Standing is what the hub knows about the requested cluster.
type Standing struct {
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

// Judge decides about a request that follows the contract. Clusters of users are admitted
// automatically.
//
// Everybody with permission to request a cluster may use any name, and only the user name
// distinguishes them. Therefore a request of a user that is not the cluster's agent yet is admitted
// only once, and never for another key. Our agent on a member uses its own account, for one name,
// and nobody else is admitted instead, not even before it has connected.
func Judge(ask Ask, cluster Standing, users []string) (Answer, *refusal.Refusal) {
	trusted := slices.Contains(users, ask.Requester)
	switch {
	case ask.Requester == ask.CommonName(),
		cluster.Account != "" && ask.Requester == cluster.Account && ask.Agent == clusterv1.AgentName:
		return Renew, nil
	case !cluster.Known || cluster.Denied:
		return Wait, nil
	case trusted && cluster.Key == ask.Key && cluster.Account == "":
		return Admit, nil
	case cluster.Key != "" || cluster.Joined || cluster.Account != "":
		return Warn, refusal.New(ReasonKeyConflict,
			"cluster %q already has an agent, and %q requests a certificate for another key: if that is the key of the cluster, approve the request with kubectl certificate approve, or delete the ManagedCluster before the cluster joins again",
			ask.Cluster, ask.Requester)
	case trusted:
		return Admit, nil
	}
	return Wait, nil
}
