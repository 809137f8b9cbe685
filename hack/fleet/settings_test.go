// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fleetgate.io/fleetgate/test/support/fleet"
)

// A gateway that had died was once restarted without its flags.
func TestSettings_StayUntilChanged(t *testing.T) {
	dir := t.TempDir()
	flags := func(value string) words {
		var w words
		if err := w.set(value); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, step := range []struct {
		what  string
		asked settings
		more  []string
		want  fleet.Options
	}{
		{"no settings", settings{}, nil, fleet.Options{Members: []string{"member-1", "member-2"}}},
		{"flags", settings{GatewayFlags: flags("--helm-charts --v=1")}, nil,
			fleet.Options{Members: []string{"member-1", "member-2"}, GatewayArgs: []string{"--helm-charts", "--v=1"}}},
		{"another member", settings{}, []string{"edge"},
			fleet.Options{Members: []string{"member-1", "member-2", "edge"}, GatewayArgs: []string{"--helm-charts", "--v=1"}}},
		{"three members and other flags", settings{count: 3, GatewayFlags: flags("")}, nil,
			fleet.Options{Members: []string{"member-1", "member-2", "edge", "member-3"}}},
		{"Open Cluster Management's API", settings{OCM: true}, nil,
			fleet.Options{Members: []string{"member-1", "member-2", "edge", "member-3"}, OCM: true}},
		{"fewer members, which removes none", settings{count: 1}, nil,
			fleet.Options{Members: []string{"member-1", "member-2", "edge", "member-3"}, OCM: true}},
	} {
		got := fleet.Options{Dir: dir}
		if err := prepare(&got, step.asked, step.more...); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(fleet.Options{}, "Dir", "Detached", "Progress")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

func TestCheckName_RejectsInvalidNames(t *testing.T) {
	for _, name := range []string{"", "hub", "gateway", "gateway-agents", "Member", "a/b", "..", strings.Repeat("m", 51)} {
		if checkName(name) == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if err := checkName("member-3"); err != nil {
		t.Error(err)
	}
}

func TestSettings_RejectTooManyMembers(t *testing.T) {
	if err := prepare(&fleet.Options{Dir: t.TempDir()}, settings{count: maxMembers + 1}); err == nil {
		t.Error("they were taken")
	}
}
