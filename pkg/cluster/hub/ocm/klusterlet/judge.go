// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Answer is what becomes of a request of a klusterlet.
type Answer int

const (
	// Wait leaves the request to a person: clusteradm accept, or kubectl certificate approve.
	Wait Answer = iota
	// Renew approves, if the requester has the right to renew certificates, as agents have.
	Renew
	// Admit approves the first certificate of a cluster that nobody has one of.
	Admit
	// Warn leaves the request to a person, who has to be told that it may be a theft.
	Warn
)

// Standing is what the hub knows of the cluster that a request names.
type Standing struct {
	// Known is true if its ManagedCluster is there, and not being deleted.
	Known bool
	// Denied is true if an administrator has let it in once, and not any more.
	Denied bool
	// Key is the fingerprint of the key with which its agent was admitted, and empty if
	// nobody was.
	Key string
	// Joined is true if an agent has reported as this cluster.
	Joined bool
	// Account is the user that the agent of a member of ours is. Empty: the cluster is none.
	Account string
}

// Judge says what becomes of a request that keeps the contract. Users are those whose
// clusters are admitted without asking anybody.
//
// Whoever may ask for a cluster may ask under any name: they are told apart by the name of
// the user alone. That is why a request of somebody who is not yet the cluster's agent is
// admitted once, and never again for another key. The agent of a member of ours asks with its
// account, for one name, and nobody else is admitted in its place: not even before it has come.
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
