// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames_AreDerivedFromTheMember(t *testing.T) {
	for what, names := range map[string][2]string{
		"namespace":    {MemberNamespace("west"), "fleet-member-west"},
		"role":         {RoleName("west"), "fleet-role-west"},
		"role binding": {RoleBindingName("west"), "fleet-rolebinding-west"},
		"user":         {AgentUsername("west"), "system:serviceaccount:fleet-member-west:agent"},
	} {
		if got, want := names[0], names[1]; got != want {
			t.Errorf("name of the %s is %q, want %q", what, got, want)
		}
	}
}

func TestMaxMemberNameLength_FitsIntoANamespace(t *testing.T) {
	if MaxMemberNameLength != 50 {
		t.Errorf("MaxMemberNameLength = %d, want the documented 50", MaxMemberNameLength)
	}
	longest := strings.Repeat("a", MaxMemberNameLength)
	if errs := validation.IsDNS1123Label(MemberNamespace(longest)); len(errs) > 0 {
		t.Errorf("The longest name makes an invalid namespace: %v", errs)
	}
	if errs := validation.IsDNS1123Label(MemberNamespace(longest + "a")); len(errs) == 0 {
		t.Error("A name over the limit makes a valid namespace: the limit is too low")
	}
}

func TestMemberOfNamespace_ReturnsTheMemberOfItsNamespaceOnly(t *testing.T) {
	for namespace, want := range map[string]string{
		"fleet-member-west":              "west",
		"fleet-member-fleet-member-west": "fleet-member-west",
		"fleet-member-":                  "",
		"fleet-system":                   "",
		"my-fleet-member-west":           "",
		"":                               "",
	} {
		got, ok := MemberOfNamespace(namespace)
		if ok != (want != "") || got != want {
			t.Errorf("MemberOfNamespace(%q) = %q, %v, want %q", namespace, got, ok, want)
		}
	}
}

func TestAgentStatusOf_ReturnsTheEntryOfTheType(t *testing.T) {
	status := MemberClusterStatus{AgentStatus: []AgentStatus{{Type: ServiceExportImportAgent}, {Type: MemberAgent}}}
	if got := status.AgentStatusOf(MemberAgent); got != &status.AgentStatus[1] {
		t.Errorf("AgentStatusOf(MemberAgent) = %v, want the second entry itself", got)
	}
	if got := status.AgentStatusOf(MultiClusterServiceAgent); got != nil {
		t.Errorf("AgentStatusOf of an agent that has not reported = %v, want nil", got)
	}
}
