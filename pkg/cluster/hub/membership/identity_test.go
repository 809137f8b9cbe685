// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestIdentityChange_NamesBothIdentities(t *testing.T) {
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "fleet-member-m1", Name: "agent"}}
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}}
	for name, tc := range map[string]struct {
		before, now []rbacv1.Subject
		want        string
	}{
		"joining member":             {now: user},
		"nothing":                    {before: user, now: user},
		"user replaces the account":  {account, user, `from ServiceAccount "fleet-member-m1/agent" to User "mallory"`},
		"account replaces a user":    {user, account, `from User "mallory" to ServiceAccount "fleet-member-m1/agent"`},
		"removed additional subject": {append(user, account...), account, `from User "mallory", ServiceAccount`},
	} {
		got := identityChange(tc.before, tc.now)
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
