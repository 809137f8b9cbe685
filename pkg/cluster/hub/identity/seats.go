// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Seats say what on the hub belongs to a member: a namespace, and in it what its agent
// is known by. Names follow from the member's, both ways, so nobody has to look them
// up. Every family of APIs has seats of its own; who makes them or reads in them is
// handed their value.
type Seats struct {
	// Prefix begins the names of members' namespaces, the rest of which is the member's.
	Prefix string
	// Account is the ServiceAccount that is the identity of the member's agent.
	Account string
	// Credential is the Secret to which every token of the account is bound.
	Credential string
	// Lease is what the member's agent renews while it lives.
	Lease string
}

// FleetSeats are those of the members of fleetgate's own agents.
func FleetSeats() Seats {
	return Seats{
		Prefix: clusterv1beta1.MemberNamespacePrefix, Account: clusterv1beta1.AgentAccount,
		Credential: clusterv1beta1.AgentCredentialSecret, Lease: clusterv1beta1.AgentLease,
	}
}

// Namespace is the member's namespace.
func (s Seats) Namespace(member string) string { return s.Prefix + member }

// MemberOf is the inverse of Namespace: the member to whom a namespace belongs, and
// false if it is no member's.
func (s Seats) MemberOf(namespace string) (member string, ok bool) {
	member, ok = strings.CutPrefix(namespace, s.Prefix)
	return member, ok && member != ""
}

// MaxName is the longest name, in characters, that a member can have: its namespace
// has to fit a DNS label.
func (s Seats) MaxName() int { return validation.DNS1123LabelMaxLength - len(s.Prefix) }

const serviceAccountUserPrefix = "system:serviceaccount:"

// Username is the name by which the hub's API server knows the member's agent.
func (s Seats) Username(member string) string {
	return serviceAccountUserPrefix + s.Namespace(member) + ":" + s.Account
}

// ForeignUser is the user whom a member's agent comes as if others keep that identity: a user or an
// account that is not the member's own. Empty: it is that account, or no single user.
func (s Seats) ForeignUser(member *clusterv1beta1.MemberCluster) string {
	user := usernameOf(member.Spec.Identity)
	if user == s.Username(member.Name) {
		return ""
	}
	return user
}

// MemberOfUsername is the inverse of Username: the member whose agent the user is, and
// false for every other user. It says nothing of whether that member exists.
func (s Seats) MemberOfUsername(username string) (member string, ok bool) {
	account, ok := strings.CutPrefix(username, serviceAccountUserPrefix)
	if !ok {
		return "", false
	}
	namespace, name, ok := strings.Cut(account, ":")
	if !ok || name != s.Account {
		return "", false
	}
	return s.MemberOf(namespace)
}
