// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Identities decides which members' agent a user is.
type Identities struct {
	// Reader reads MemberClusters, usually from a cache.
	Reader client.Reader
	// Seats identify the members' own accounts.
	Seats Seats
}

// MembersOf returns the names of the members whose identity the user is, sorted; none is no error.
// Identities are not unique, so one user can be the agent of several members. The account "agent" in a
// member's own namespace is always its agent, as long as the member exists. A Group identity is no
// agent: only a single, distinguishable user can open a tunnel.
func (m *Identities) MembersOf(ctx context.Context, username string) ([]string, error) {
	var members clusterv1beta1.MemberClusterList // Read-only, so not copied.
	if err := m.Reader.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	return membersOf(m.Seats, username, members.Items), nil
}

// IsAgentOf reports whether a user is the member's agent; a missing member is no error. It reads only
// that member.
func (m *Identities) IsAgentOf(ctx context.Context, username, member string) (bool, error) {
	var read clusterv1beta1.MemberCluster
	found, err := reconcileutil.GetIfExists(ctx, m.Reader, client.ObjectKey{Name: member}, &read, "reading MemberCluster %q", member)
	return found && speaksFor(m.Seats, username, &read), err
}

func membersOf(seats Seats, username string, members []clusterv1beta1.MemberCluster) []string {
	var names []string
	for i := range members {
		if speaksFor(seats, username, &members[i]) {
			names = append(names, members[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func speaksFor(seats Seats, username string, member *clusterv1beta1.MemberCluster) bool {
	if username == "" {
		return false
	}
	if own, ok := seats.MemberOfUsername(username); ok && own == member.Name {
		return true
	}
	return username == usernameOf(member.Spec.Identity)
}

// usernameOf is the subject's user name at the hub's API server, or empty for a subject that is no
// single user.
func usernameOf(identity rbacv1.Subject) string {
	switch identity.Kind {
	case rbacv1.UserKind:
		return identity.Name
	case rbacv1.ServiceAccountKind:
		return serviceAccountUserPrefix + identity.Namespace + ":" + identity.Name
	default:
		return ""
	}
}
