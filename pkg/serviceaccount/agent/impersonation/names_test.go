// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRefusal_OfSystemIdentities(t *testing.T) {
	tests := map[string]struct {
		request Request
		refused bool
	}{
		"ordinary user":          {Request{User: "admin", Groups: []string{"fleetgate:admins"}}, false},
		"hub's service account":  {Request{User: "hub:system:serviceaccount:ns:name"}, false},
		"no user":                {Request{Groups: []string{"a"}}, true},
		"member's own account":   {Request{User: "system:serviceaccount:kube-system:x"}, true},
		"masters":                {Request{User: "a", Groups: []string{"system:masters"}}, true},
		"kubeadm's masters":      {Request{User: "a", Groups: []string{"b", "kubeadm:cluster-admins"}}, true},
		"kubeadm's own user":     {Request{User: "kubernetes-admin"}, true},
		"the probe's own user":   {Request{User: canary}, true},
		"empty group":            {Request{User: "a", Groups: []string{""}}, true},
		"line break in the name": {Request{User: "a\nImpersonate-Group: b"}, true},
		"too long":               {Request{User: strings.Repeat("a", maxNameBytes+1)}, true},
		"too many bytes":         {Request{User: "a", Groups: slices.Repeat([]string{strings.Repeat("g", maxNameBytes)}, maxGroupBytes/maxNameBytes+1)}, true},
		"too many groups":        {Request{User: "a", Groups: slices.Repeat([]string{"g"}, maxGroups+1)}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if reason := tt.request.refusal(); (reason != "") != tt.refused {
				t.Errorf("refusal is %q, want refused: %v", reason, tt.refused)
			}
		})
	}
}

func TestRemember_DropsTheLeastRecentNames(t *testing.T) {
	tests := map[string]struct {
		names, wanted []string
		want          []string
		added         bool
	}{
		"first":                                {nil, []string{"a"}, []string{"a"}, true},
		"a known name becomes the most recent": {[]string{"a", "b"}, []string{"a"}, []string{"b", "a"}, false},
		"the oldest name is removed":           {[]string{"a", "b", "c"}, []string{"d"}, []string{"b", "c", "d"}, true},
		"a duplicate counts once":              {[]string{"a"}, []string{"b", "b"}, []string{"a", "b"}, true},
		"no name":                              {[]string{"a"}, nil, []string{"a"}, false},
		"too many bytes":                       {[]string{"aaaa", "bbbb"}, []string{"cccc"}, []string{"bbbb", "cccc"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, added := remember(tt.names, tt.wanted, bound{names: 3, bytes: 10})
			if diff := cmp.Diff(tt.want, got); diff != "" || added != tt.added {
				t.Errorf("added %v, want %v; names differ (-want +got):\n%s", added, tt.added, diff)
			}
		})
	}
}

func TestRefusal_LimitsRequestsToTheSizeOfTheRole(t *testing.T) {
	if maxGroups > groupBound.names || maxGroupBytes > groupBound.bytes || maxNameBytes > userBound.bytes {
		t.Error("a granted request can remove its own names from the role")
	}
}

func TestByRecency_SortsUnknownNamesFirst(t *testing.T) {
	got := byRecency([]string{"a", "b", "c", "d"}, []string{"c", "gone", "a"})
	if diff := cmp.Diff([]string{"b", "d", "c", "a"}, got); diff != "" {
		t.Errorf("order differs (-want +got):\n%s", diff)
	}
}

func TestRules_HaveNoRuleWithoutNames(t *testing.T) {
	for _, mode := range []Mode{Plain, Constrained} {
		for _, rules := range [][]rbacv1.PolicyRule{mode.rules([]string{"a"}, nil), mode.rules(nil, []string{"g"}), mode.rules(nil, nil)} {
			for _, rule := range rules {
				if len(rule.ResourceNames) == 0 && (slices.Contains(rule.Verbs, legacyVerb) || slices.Contains(rule.Verbs, identityVerb)) {
					t.Errorf("rule on %v of mode %s has no names and so allows all of them", rule.Resources, mode)
				}
			}
		}
	}
}
