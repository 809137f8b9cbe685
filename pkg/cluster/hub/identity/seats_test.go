// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestSeats_NamesAreReversible(t *testing.T) {
	for name, seats := range map[string]Seats{
		"fleet":       FleetSeats(),
		"no prefix":   {Account: "agent"},
		"other seats": {Prefix: "site-", Account: "robot"},
	} {
		if member, ok := seats.MemberOf(seats.Namespace("m")); member != "m" || !ok {
			t.Errorf("%s: MemberOf(%q) = %q, %t", name, seats.Namespace("m"), member, ok)
		}
		if member, ok := seats.MemberOfUsername(seats.Username("m")); member != "m" || !ok {
			t.Errorf("%s: MemberOfUsername(%q) = %q, %t", name, seats.Username("m"), member, ok)
		}
		for _, stranger := range []string{"", seats.Username(""), seats.Username("m") + "x", "x" + seats.Username("m"), seats.Account} {
			if member, ok := seats.MemberOfUsername(stranger); ok || member != "" {
				t.Errorf("%s: user %q counts as agent of %q", name, stranger, member)
			}
		}
	}
}

// Users rely on these names.
func TestFleetSeats_FollowTheAPI(t *testing.T) {
	seats := FleetSeats()
	if got := seats.Namespace("m"); got != clusterv1beta1.MemberNamespace("m") {
		t.Errorf("Namespace() = %q", got)
	}
	if got := seats.Username("m"); got != clusterv1beta1.AgentUsername("m") {
		t.Errorf("Username() = %q", got)
	}
	if got := seats.MaxName(); got != clusterv1beta1.MaxMemberNameLength {
		t.Errorf("MaxName() = %d", got)
	}
}

func TestMemberOfUsername(t *testing.T) {
	for username, want := range map[string]string{
		"system:serviceaccount:fleet-member-west:agent":         "west",
		"system:serviceaccount:fleet-member-west:default":       "",
		"system:serviceaccount:fleet-member-west:agent:x":       "",
		"system:serviceaccount:fleet-member-:agent":             "",
		"system:serviceaccount:fleet-system:agent":              "",
		"system:serviceaccount:fleet-member-west":               "",
		"system:serviceaccounts:fleet-member-west:agent":        "",
		"hub:system:serviceaccount:fleet-member-west:agent":     "",
		"fleet-member-west:agent":                               "",
		"system:serviceaccount:system:fleet-member-west:agent":  "",
		"system:serviceaccount:fleet-member-west:agent\nsystem": "",
		"": "",
	} {
		got, ok := FleetSeats().MemberOfUsername(username)
		if ok != (want != "") || ok && got != want {
			t.Errorf("MemberOfUsername(%q) = %q, %v, want %q", username, got, ok, want)
		}
	}
}
