// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// Seats define the names of a member's objects on the hub: a namespace, and in it the objects of its
// agent. They follow from the member's name and vice versa, so no lookup is needed. Every family of
// APIs has its own seats; packages get them as a value.
type Seats struct {
	// Prefix is the prefix of members' namespaces; the rest is the member's name.
	Prefix string
	// Account is the ServiceAccount that is the identity of the member's agent.
	Account    string
	Credential string
	// Lease is the Lease that the member's agent renews.
	Lease string
}

// FleetSeats are the seats of fleetgate's own agents.
func FleetSeats() Seats {
	return Seats{
		Prefix: clusterv1beta1.MemberNamespacePrefix, Account: clusterv1beta1.AgentAccount,
		Credential: clusterv1beta1.AgentCredentialSecret, Lease: clusterv1beta1.AgentLease,
	}
}

// Namespace returns the namespace of a member.
func (s Seats) Namespace(member string) string { return s.Prefix + member }

// MemberOf is the inverse of Namespace: the member of a namespace, and false if it is no member's.
func (s Seats) MemberOf(namespace string) (member string, ok bool) {
	member, ok = strings.CutPrefix(namespace, s.Prefix)
	return member, ok && member != ""
}

// MaxName is the maximum length of a member's name: its namespace has to be a DNS label.
func (s Seats) MaxName() int { return validation.DNS1123LabelMaxLength - len(s.Prefix) }

const serviceAccountUserPrefix = "system:serviceaccount:"

// Username is the user name of the member's agent at the hub's API server.
func (s Seats) Username(member string) string {
	return serviceAccountUserPrefix + s.Namespace(member) + ":" + s.Account
}

// ForeignUser is the user of a member's agent if its identity is managed elsewhere: a user or an
// account that is not the member's own. It is empty for the member's own account, or if the identity is
// no single user.
func (s Seats) ForeignUser(member *clusterv1beta1.MemberCluster) string {
	user := usernameOf(member.Spec.Identity)
	if user == s.Username(member.Name) {
		return ""
	}
	return user
}

// MemberOfUsername is the inverse of Username: the member whose agent the user is, and false for every
// other user. It does not check that the member exists.
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
