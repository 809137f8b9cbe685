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

// Identities answers for which members a user speaks.
type Identities struct {
	// Reader reads MemberClusters; a cache is meant.
	Reader client.Reader
	// Seats tell members' own accounts from others.
	Seats Seats
}

// MembersOf returns the names of the members whose identity the user is, sorted;
// none is no error. Identities are not unique, so one user may speak for several
// members. The account "agent" in a member's own namespace always speaks for that
// member, as long as it exists. A Group identity speaks for nobody: who may open
// a tunnel must be one user, who can be told from all others.
func (m *Identities) MembersOf(ctx context.Context, username string) ([]string, error) {
	var members clusterv1beta1.MemberClusterList // only looked at, so not copied
	if err := m.Reader.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	return membersOf(m.Seats, username, members.Items), nil
}

// IsAgentOf is true for a user who speaks for the member; that there is no such member is no error.
// However many members there are, it looks at one.
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

// usernameOf is the name by which the hub's API server knows the subject, or
// empty for a subject that is no single user.
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
