// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
)

func member(name string, identity rbacv1.Subject) clusterv1beta1.MemberCluster {
	return clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: identity},
	}
}

func TestMembersOf(t *testing.T) {
	fleet := []clusterv1beta1.MemberCluster{
		member("b", rbacv1.Subject{Kind: "User", Name: "principal"}),
		member("a", rbacv1.Subject{Kind: "User", Name: "principal"}),
		member("account", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "robot"}),
		member("group", rbacv1.Subject{Kind: "Group", Name: "robots"}),
		member("nobody", rbacv1.Subject{Kind: "User"}),
	}
	tests := map[string]struct {
		username string
		want     []string
	}{
		"user of several members":                 {"principal", []string{"a", "b"}},
		"service account by its user name":        {"system:serviceaccount:ops:robot", []string{"account"}},
		"bare name of a service account":          {"robot", nil},
		"name of a group":                         {"robots", nil},
		"member's own agent":                      {"system:serviceaccount:fleet-member-group:agent", []string{"group"}},
		"agent of a missing member":               {"system:serviceaccount:fleet-member-gone:agent", nil},
		"other account in the member's namespace": {"system:serviceaccount:fleet-member-group:default", nil},
		"account agent in another namespace":      {"system:serviceaccount:group:agent", nil},
		"empty user and empty identity":           {"", nil},
	}
	builder := fake.NewClientBuilder().WithScheme(build.Scheme(clusterv1beta1.AddToScheme))
	for i := range fleet {
		builder.WithObjects(&fleet[i])
	}
	identities := &Identities{Reader: builder.Build(), Seats: FleetSeats()}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			members, err := identities.MembersOf(t.Context(), tc.username)
			if diff := cmp.Diff(tc.want, members); diff != "" || err != nil {
				t.Errorf("members of %q: %v (-want +got):\n%s", tc.username, err, diff)
			}
			for _, member := range []string{"a", "b", "account", "group", "nobody", "gone"} {
				is, err := identities.IsAgentOf(t.Context(), tc.username, member)
				if want := slices.Contains(tc.want, member); is != want || err != nil {
					t.Errorf("IsAgentOf(%q, %q) = %v, %v, want %v", tc.username, member, is, err, want)
				}
			}
		})
	}
}
