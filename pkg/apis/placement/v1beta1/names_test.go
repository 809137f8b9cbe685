// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames_HaveTheUpstreamFormat(t *testing.T) {
	tests := map[string]struct {
		got, want string
	}{
		"policy snapshot":                       {PolicySnapshotName("web", 3), "web-3"},
		"master resource snapshot":              {ResourceSnapshotName("web", 3), "web-3-snapshot"},
		"further resource snapshot":             {ResourceSubSnapshotName("web", 3, 0), "web-3-0"},
		"override snapshot":                     {OverrideSnapshotName("more-replicas", 0), "more-replicas-0"},
		"binding":                               {BindingName("web", "member-1", "0c7b1dc2-6a5e-4a3f"), "web-member-1-0c7b1dc2"},
		"work of a cluster placement":           {WorkName("", "web"), "web-work"},
		"work of a namespaced placement":        {WorkName("shop", "web"), "shop.web-work"},
		"work of a further snapshot":            {SubWorkName("", "web", 2), "web-2"},
		"work of a namespaced further snapshot": {SubWorkName("shop", "web", 2), "shop.web-2"},
		"work of a cluster-scoped envelope": {
			EnvelopeWorkName("", "web", EnvelopeIdentifier{Type: ClusterResourceEnvelopeType, Name: "roles"}),
			"web-envelope-10e78d0b14ec8cfc",
		},
		"work of a namespaced envelope": {
			EnvelopeWorkName("shop", "web", EnvelopeIdentifier{Type: ResourceEnvelopeType, Namespace: "shop", Name: "quota"}),
			"shop.web-envelope-8ede36f726dde3ba",
		},
		"approval before a stage":      {BeforeStageApprovalName("run", "canary"), "run-before-canary"},
		"approval after a stage":       {AfterStageApprovalName("run", "canary"), "run-after-canary"},
		"condition of a CRP":           {(&ClusterResourcePlacement{}).ConditionType(ConditionApplied), "ClusterResourcePlacementApplied"},
		"condition of an RP":           {(&ResourcePlacement{}).ConditionType(ConditionScheduled), "ResourcePlacementScheduled"},
		"resource in an error message": {Resource("works").String(), "works.placement.kubernetes-fleet.io"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("got %q, want %q", tt.got, tt.want)
			}
		})
	}
}

func TestBindingName_IsValidForLongNames(t *testing.T) {
	const unique = "0c7b1dc2-6a5e-4a3f-9f0e-111111111111"
	tests := map[string]struct {
		placement, member, want string
	}{
		"truncates long names to the limit of a label value": {
			placement: strings.Repeat("p", 63), member: strings.Repeat("m", 63),
			want: strings.Repeat("p", 26) + "-" + strings.Repeat("m", 27) + "-0c7b1dc2",
		},
		"omits a dot before a cut": {
			placement: strings.Repeat("p", 25) + ".rest", member: strings.Repeat("m", 26) + ".rest",
			want: strings.Repeat("p", 25) + "-" + strings.Repeat("m", 26) + "-0c7b1dc2",
		},
		"keeps a dash before a cut": {
			placement: strings.Repeat("p", 25) + "-rest", member: "member",
			want: strings.Repeat("p", 25) + "--member-0c7b1dc2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := BindingName(tt.placement, tt.member, unique)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if errs := validation.IsDNS1123Subdomain(got); len(errs) > 0 {
				t.Errorf("%q is not a valid name: %v", got, errs)
			}
			if len(got) > validation.LabelValueMaxLength {
				t.Errorf("%q has %d characters, too many for a label", got, len(got))
			}
		})
	}
}

func TestEnvelopeWorkName_DiffersPerEnvelope(t *testing.T) {
	seen := map[string]EnvelopeIdentifier{}
	for _, e := range []EnvelopeIdentifier{
		{Type: ClusterResourceEnvelopeType, Name: "a"},
		{Type: ResourceEnvelopeType, Name: "a", Namespace: "one"},
		{Type: ResourceEnvelopeType, Name: "a", Namespace: "two"},
		{Type: ResourceEnvelopeType, Name: "b", Namespace: "one"},
	} {
		name := EnvelopeWorkName("", "web", e)
		if other, ok := seen[name]; ok {
			t.Errorf("%v and %v have the same Work %s", e, other, name)
		}
		seen[name] = e
	}
}
