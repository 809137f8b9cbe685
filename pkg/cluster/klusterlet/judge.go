// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	"fleetgate.io/fleetgate/pkg/refusal"
)

// Answer is what becomes of a request of a klusterlet.
type Answer int

const (
	// Wait leaves the request to a person: clusteradm accept, or kubectl certificate approve.
	Wait Answer = iota
	// Renew approves, if the requester has the right to renew certificates.
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
}

// Judge says what becomes of a request that keeps the contract. Users are those whose
// clusters are admitted without asking anybody.
//
// Whoever may ask for a cluster may ask under any name: they are told apart by the name of
// the user alone. That is why a request of somebody who is not yet the cluster's agent is
// admitted once, and never again for another key.
func Judge(ask Ask, cluster Standing, users []string) (Answer, *refusal.Refusal) {
	if ask.Requester == ask.CommonName() {
		return Renew, nil
	}
	if !slices.Contains(users, ask.Requester) {
		return Wait, nil
	}
	switch {
	case !cluster.Known || cluster.Denied:
		return Wait, nil
	case cluster.Key == ask.Key:
		return Admit, nil
	case cluster.Key != "" || cluster.Joined:
		return Warn, refusal.New(ReasonOtherKey,
			"cluster %q has an agent already, and %q asks for a certificate for another key: if that is the cluster's, approve it with kubectl certificate approve, or delete the ManagedCluster before it joins anew",
			ask.Cluster, ask.Requester)
	}
	return Admit, nil
}
