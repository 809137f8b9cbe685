// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSystemIdentitiesAreNeverGranted(t *testing.T) {
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
		"empty group":            {Request{User: "a", Groups: []string{""}}, true},
		"line break in the name": {Request{User: "a\nImpersonate-Group: b"}, true},
		"too long":               {Request{User: strings.Repeat("a", maxNameBytes+1)}, true},
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

func TestRememberDropsTheLeastRecent(t *testing.T) {
	tests := map[string]struct {
		names, wanted []string
		want          []string
		added         bool
	}{
		"first":            {nil, []string{"a"}, []string{"a"}, true},
		"known moves up":   {[]string{"a", "b"}, []string{"a"}, []string{"b", "a"}, false},
		"oldest goes":      {[]string{"a", "b", "c"}, []string{"d"}, []string{"b", "c", "d"}, true},
		"twice is once":    {[]string{"a"}, []string{"b", "b"}, []string{"a", "b"}, true},
		"nothing is asked": {[]string{"a"}, nil, []string{"a"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, added := remember(tt.names, tt.wanted, 3)
			if diff := cmp.Diff(tt.want, got); diff != "" || added != tt.added {
				t.Errorf("added %v, want %v; names differ (-want +got):\n%s", added, tt.added, diff)
			}
		})
	}
}

func TestNoGroupsMakeNoRule(t *testing.T) {
	for _, rule := range rulesFor([]string{"a"}, nil) {
		if len(rule.ResourceNames) == 0 {
			t.Errorf("rule on %v has no names and so allows all of them", rule.Resources)
		}
	}
}
