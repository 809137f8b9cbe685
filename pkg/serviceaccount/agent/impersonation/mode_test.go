// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRules_NeverContainTheVerbsOfBothModes(t *testing.T) {
	for mode, never := range map[Mode]string{Constrained: legacyVerb, Plain: actionPrefix + "get"} {
		for _, rule := range mode.rules([]string{"jane"}, []string{"devs"}) {
			if slices.Contains(rule.Verbs, never) || slices.Contains(rule.Verbs, "*") {
				t.Errorf("a rule of mode %s has the verbs %v", mode, rule.Verbs)
			}
		}
	}
}

func TestRules_AllowNoActionWithoutNames(t *testing.T) {
	for _, rule := range Constrained.rules(nil, nil) {
		if slices.Contains(rule.Resources, "*") || len(rule.NonResourceURLs) > 0 {
			t.Errorf("without names there is the rule %v", rule)
		}
	}
}

func TestModeOf(t *testing.T) {
	earlier := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"jane"}}}
	tests := map[string]struct {
		rules []rbacv1.PolicyRule
		want  Mode
	}{
		"a new one":                             {nil, ""},
		"with the probe only":                   {probeRules(), ""},
		"by an earlier version":                 {earlier, Plain},
		"by an earlier version, with the probe": {append(slices.Clone(earlier), probeRules()...), Plain},
		"plain":                                 {Plain.rules([]string{"jane"}, nil), Plain},
		"constrained":                           {Constrained.rules([]string{"jane"}, []string{"devs"}), Constrained},
		"constrained, with a plain rule of another client": {append(Constrained.rules([]string{"jane"}, nil), earlier...), Plain},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := modeOf(tt.rules); got != tt.want {
				t.Errorf("mode %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNamesOf_ReadsRolesOfBothModes(t *testing.T) {
	for _, mode := range []Mode{Plain, Constrained} {
		role := &rbacv1.ClusterRole{Rules: mode.rules([]string{"jane"}, []string{"devs"})}
		users, groups := grantable("user", namesOf(role, "users")), grantable("group", namesOf(role, "groups"))
		if !slices.Equal(users, []string{"jane"}) || !slices.Equal(groups, []string{"devs"}) {
			t.Errorf("of a role of mode %s these are read: %v, %v", mode, users, groups)
		}
		none := &rbacv1.ClusterRole{Rules: mode.rules(nil, []string{"devs"})}
		if users := grantable("user", namesOf(none, "users")); len(users) > 0 {
			t.Errorf("the probe's own user counts as granted: %v", users)
		}
	}
}
