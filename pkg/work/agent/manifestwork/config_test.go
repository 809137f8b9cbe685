// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func TestMatches_TreatsAnAsteriskAsAnyText(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"web", "web", true},
		{"web", "web-1", false},
		{"", "", true},
		{"", "default", false},
		{"*", "", true},
		{"*", "default", true},
		{"web-*", "web-1", true},
		{"web-*", "web", false},
		{"*-web", "my-web", true},
		{"*-web", "my-web-1", false},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "acb", false},
		{"a*a", "a", false},
		{"a.c", "abc", false},
		{"**", "x", true},
	} {
		if got := matches(tc.pattern, tc.text); got != tc.want {
			t.Errorf("%q is matched by %q: %t", tc.text, tc.pattern, got)
		}
	}
}

func TestConfigOf_TakesTheFirstMatchingConfig(t *testing.T) {
	config := func(group, resource, namespace, name, strategy string) workv1.ManifestConfigOption {
		return workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: namespace, Name: name},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyType(strategy)},
		}
	}
	spec := &workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{
		config("", "configmaps", "default", "one", "CreateOnly"),
		config("", "configmaps", "*", "*", "ReadOnly"),
		config("apps", "deployments", "default", "*", "ServerSideApply"),
	}}
	for _, tc := range []struct {
		ref  manifest.Ref
		want workv1.UpdateStrategyType
	}{
		{manifest.Ref{Resource: "configmaps", Namespace: "default", Name: "one"}, "CreateOnly"},
		{manifest.Ref{Resource: "configmaps", Namespace: "default", Name: "two"}, "ReadOnly"},
		{manifest.Ref{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}, "ServerSideApply"},
		{manifest.Ref{Group: "apps", Resource: "deployments", Namespace: "other", Name: "web"}, "Update"},
		{manifest.Ref{Resource: "secrets", Namespace: "default", Name: "one"}, "Update"},
		{manifest.Ref{}, "Update"},
	} {
		if got := strategyOf(configOf(spec, tc.ref)).Type; got != tc.want {
			t.Errorf("%+v is written by %s, want %s", tc.ref, got, tc.want)
		}
	}
}

func TestConfigOf_TakesEachFieldFromTheFirstConfigThatSetsIt(t *testing.T) {
	id := func(namespace, name string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Resource: "configmaps", Namespace: namespace, Name: name}
	}
	feedback := func(kind workv1.FeedbackRuleType) []workv1.FeedbackRule { return []workv1.FeedbackRule{{Type: kind}} }
	condition := func(name string) []workv1.ConditionRule {
		return []workv1.ConditionRule{{Condition: name, Type: workv1.ConditionCEL}}
	}
	spec := &workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{
		{ResourceIdentifier: id("*", "*")},
		{ResourceIdentifier: id("elsewhere", "*"), FeedbackRules: feedback("elsewhere")},
		{ResourceIdentifier: id("default", "*"), FeedbackRules: feedback("first")},
		{ResourceIdentifier: id("default", "one"), FeedbackRules: feedback("second"), UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyCreateOnly}},
		{ResourceIdentifier: id("*", "one"), UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyReadOnly}, ConditionRules: condition("First")},
		{ResourceIdentifier: id("*", "*"), ConditionRules: condition("Second")},
	}}
	got := configOf(spec, manifest.Ref{Resource: "configmaps", Namespace: "default", Name: "one"})
	want := workv1.ManifestConfigOption{FeedbackRules: feedback("first"), ConditionRules: condition("First"),
		UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyCreateOnly}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what counts (-want +got):\n%s", diff)
	}
}

func TestModeOf(t *testing.T) {
	type mode struct {
		Method  engine.Method
		Force   bool
		Manager string
	}
	for name, tc := range map[string]struct {
		strategy workv1.UpdateStrategy
		want     mode
		known    bool
	}{
		"Update":                   {workv1.UpdateStrategy{Type: "Update"}, mode{Method: engine.Replace}, true},
		"none":                     {workv1.UpdateStrategy{}, mode{Method: engine.Replace}, true},
		"CreateOnly":               {workv1.UpdateStrategy{Type: "CreateOnly"}, mode{Method: engine.CreateOnly}, true},
		"ReadOnly":                 {workv1.UpdateStrategy{Type: "ReadOnly"}, mode{Method: engine.ReadOnly}, true},
		"ServerSideApply":          {workv1.UpdateStrategy{Type: "ServerSideApply"}, mode{Method: engine.ServerSide, Manager: "work-agent"}, true},
		"ServerSideApply, by name": {workv1.UpdateStrategy{Type: "ServerSideApply", ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, FieldManager: "work-agent-x"}}, mode{engine.ServerSide, true, "work-agent-x"}, true},
		"one of a later version":   {workv1.UpdateStrategy{Type: "Mirror"}, mode{Method: engine.ReadOnly}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := modeOf(strategyOf(workv1.ManifestConfigOption{UpdateStrategy: &tc.strategy}))
			if diff := cmp.Diff(tc.want, mode{got.Method, got.Force, got.Manager}); diff != "" || known != tc.known {
				t.Errorf("it is known: %t; the way is (-want +got):\n%s", known, diff)
			}
		})
	}
}

func TestStays_FollowsTheDeleteOption(t *testing.T) {
	one := manifest.Ref{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}
	rule := workv1.OrphaningRule{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}
	other := rule
	other.Namespace = "*"
	selectively := func(rules ...workv1.OrphaningRule) *workv1.DeleteOption {
		return &workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules}}
	}
	for name, tc := range map[string]struct {
		option *workv1.DeleteOption
		want   bool
	}{
		"none":                 {nil, false},
		"empty":                {&workv1.DeleteOption{}, false},
		"Foreground":           {&workv1.DeleteOption{PropagationPolicy: "Foreground"}, false},
		"Orphan":               {&workv1.DeleteOption{PropagationPolicy: "Orphan"}, true},
		"named":                {selectively(rule), true},
		"not named":            {selectively(other), false},
		"selectively, nothing": {&workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan"}, false},
	} {
		if got := stays(tc.option, one); got != tc.want {
			t.Errorf("with %s it stays: %t", name, got)
		}
	}
}

func TestRank_EqualsThatOfOCM(t *testing.T) {
	for rank, resources := range [][]schema.GroupResource{
		{{Resource: "namespaces"}, {Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}},
		{{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}},
		{{Resource: "serviceaccounts"}, {Group: "policy", Resource: "poddisruptionbudgets"}},
		{{Resource: "configmaps"}, {Resource: "persistentvolumeclaims"}},
		{{Resource: "services"}},
		{{Group: "apps", Resource: "deployments"}, {Group: "autoscaling", Resource: "horizontalpodautoscalers"}},
		{{Group: "apiregistration.k8s.io", Resource: "apiservices"}},
		{{Group: "example.com", Resource: "services"}, {Group: "networking.k8s.io", Resource: "ingresses"}},
	} {
		for _, resource := range resources {
			if got := dialect().Waves.Of(resource); got != rank {
				t.Errorf("%s has rank %d, want %d", resource, got, rank)
			}
		}
	}
}

func TestHubHash(t *testing.T) {
	const want = "100680ad546ce6a577f42f52df33b4cfdca756859e664b8d7de329b150d09ce9"
	if got := HubHash("https://example.com"); got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
}
