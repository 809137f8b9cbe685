// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestAccountName_ContainsUIDAndIsValid(t *testing.T) {
	uid := types.UID("0b9f9f0c-4f1e-4a5c-9a44-111111111111")
	tests := map[string]struct{ token, want string }{
		"short name":                            {"new-token", "new-token-" + string(uid)},
		"long name is truncated before the UID": {strings.Repeat("a", 253), strings.Repeat("a", 210) + "-" + string(uid)},
		"no dot or dash before the separator":   {strings.Repeat("a", 208) + ".-" + strings.Repeat("b", 43), strings.Repeat("a", 208) + "-" + string(uid)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := accountName(tc.token, uid)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if problems := validation.IsDNS1123Subdomain(got + legacyNameSuffix); len(problems) > 0 {
				t.Errorf("%q cannot name a Secret: %v", got, problems)
			}
		})
	}
}

func TestMemberNames_FitNamespace(t *testing.T) {
	for _, tc := range []struct{ namespace, cluster string }{
		{"clusters", "edge-1"},
		{strings.Repeat("n", 63), strings.Repeat("c", 50)},
		{strings.Repeat("n", 36) + "-x", "edge"},
	} {
		names := memberNames(tc.namespace, tc.cluster)
		if names[0] != tc.cluster {
			t.Errorf("first name for Cluster %q = %q", tc.cluster, names[0])
		}
		for _, name := range names {
			if problems := validation.IsDNS1123Label(clusterv1beta1.MemberNamespace(name)); len(problems) > 0 {
				t.Errorf("namespace name of member %q of %q is invalid: %v", name, tc, problems)
			}
		}
	}
	if shorten(strings.Repeat("n", 60)+"a") == shorten(strings.Repeat("n", 60)+"b") {
		t.Error("two long names collide")
	}
}

// The name of a member is stored, so that another value would be another object.
func TestShorten_StaysTheSame(t *testing.T) {
	if got, want := shorten(strings.Repeat("n", 60)), "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-fb886b452111"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
