// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func clusterRole(name string) placementv1beta1.ResourceSelectorTerm {
	return placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: name}
}

func patching(patches ...placementv1beta1.JSONPatchOverride) *placementv1beta1.OverridePolicy {
	return &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		OverrideType: placementv1beta1.JSONPatchOverrideType, JSONPatchOverrides: patches,
	}}}
}

func replace(path string) placementv1beta1.JSONPatchOverride {
	return placementv1beta1.JSONPatchOverride{Operator: placementv1beta1.JSONPatchReplace, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(`1`)}}
}

func clusterOverride(name string, selectors ...placementv1beta1.ResourceSelectorTerm) placementv1beta1.ClusterResourceOverride {
	override := placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
	override.Spec = placementv1beta1.ClusterResourceOverrideSpec{ClusterResourceSelectors: selectors, Policy: patching(replace("/rules"))}
	return override
}

func TestValidateClusterResourceOverride(t *testing.T) {
	byLabel := clusterRole("")
	byLabel.LabelSelector = &metav1.LabelSelector{}
	tests := map[string]struct {
		override placementv1beta1.ClusterResourceOverride
		others   []placementv1beta1.ClusterResourceOverride
		want     []string
	}{
		"a resource of its own": {
			override: clusterOverride("a", clusterRole("x")),
			others:   []placementv1beta1.ClusterResourceOverride{clusterOverride("b", clusterRole("y"))},
		},
		"itself among the others": {
			override: clusterOverride("a", clusterRole("x")),
			others:   []placementv1beta1.ClusterResourceOverride{clusterOverride("a", clusterRole("x"))},
		},
		"a resource of another, and everything else that is wrong": {
			override: func() placementv1beta1.ClusterResourceOverride {
				o := clusterOverride("a", clusterRole("x"))
				o.Spec.Policy = patching(replace("/kind"), replace("////"))
				o.Spec.Policy.OverrideRules[0].ClusterSelector = &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
					{LabelSelector: &metav1.LabelSelector{}, PropertySorter: &placementv1beta1.PropertySorter{}},
				}}
				return o
			}(),
			others: []placementv1beta1.ClusterResourceOverride{clusterOverride("b", clusterRole("y"), clusterRole("x"))},
			want: []string{
				"spec.clusterResourceSelectors[0]: invalid resource selector {Group:rbac.authorization.k8s.io Version:v1 Kind:ClusterRole Name:x LabelSelector:nil SelectionScope:}: the resource has been selected by both a and b, which is not supported",
				"clusterSelectorTerms[0].propertySorter: only labelSelector is supported",
				"jsonPatchOverrides[0].path: cannot override typeMeta fields",
				"jsonPatchOverrides[1].path: path cannot contain empty string",
			},
		},
		"the same twice": {
			override: clusterOverride("a", clusterRole("x"), clusterRole("x")),
			want:     []string{"spec.clusterResourceSelectors[1]: already exists, and must be unique"},
		},
		"by labels, and by no name": {
			override: clusterOverride("a", byLabel, clusterRole("")),
			want:     []string{"clusterResourceSelectors[0].labelSelector: label selector is not supported", "clusterResourceSelectors[1].name: resource name is required for resource selection"},
		},
		"one too many": {
			override: clusterOverride("new", clusterRole("x")),
			others:   make([]placementv1beta1.ClusterResourceOverride, MaxOverrides),
			want:     []string{"metadata.name: clusterResourceOverride limit has been reached: at most 100 cluster resources can be created"},
		},
		"one of a hundred changes": {
			override: clusterOverride("old", clusterRole("x")),
			others:   append(make([]placementv1beta1.ClusterResourceOverride, MaxOverrides-1), clusterOverride("old", clusterRole("x"))),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			compareProblems(t, tt.want, ValidateClusterResourceOverride(&tt.override, tt.others))
		})
	}
}

func TestValidateResourceOverride(t *testing.T) {
	override := func(name string, resources ...string) placementv1beta1.ResourceOverride {
		o := placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
		o.Spec.Policy = patching(replace("/data/a"))
		for _, resource := range resources {
			o.Spec.ResourceSelectors = append(o.Spec.ResourceSelectors, placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: resource})
		}
		return o
	}
	many := func(n int) []placementv1beta1.ResourceOverride {
		all := make([]placementv1beta1.ResourceOverride, n)
		for i := range all {
			all[i].Name = fmt.Sprint("other-", i)
		}
		return all
	}
	tests := map[string]struct {
		override placementv1beta1.ResourceOverride
		others   []placementv1beta1.ResourceOverride
		want     []string
	}{
		"a resource of its own": {override: override("a", "x"), others: []placementv1beta1.ResourceOverride{override("b", "y")}},
		"a resource of another": {
			override: override("a", "x"), others: []placementv1beta1.ResourceOverride{override("b", "x")},
			want: []string{"spec.resourceSelectors[0]: the resource has been selected by both a and b, which is not supported"},
		},
		"the same twice": {override: override("a", "x", "x"), want: []string{"spec.resourceSelectors[1]: must be unique"}},
		"one too many": {
			override: override("a", "x"), others: many(MaxOverrides),
			want: []string{"metadata.name: resourceOverride limit has been reached: at most 100 resources can be created"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			compareProblems(t, tt.want, ValidateResourceOverride(&tt.override, tt.others))
		})
	}
}

func TestOverridePolicy(t *testing.T) {
	remove := placementv1beta1.JSONPatchOverride{Operator: placementv1beta1.JSONPatchRemove, Path: "/metadata/labels/a"}
	removeValue := remove
	removeValue.Value.Raw = []byte(`"v"`)
	terms := func(terms ...placementv1beta1.ClusterSelectorTerm) *placementv1beta1.OverridePolicy {
		policy := patching(remove)
		policy.OverrideRules[0].ClusterSelector = &placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms}
		return policy
	}
	tests := map[string]struct {
		policy *placementv1beta1.OverridePolicy
		want   []string
	}{
		"labels and annotations":        {policy: patching(replace("/metadata/labels/a"), replace("/metadata/annotations/kind"), remove)},
		"fields that begin like others": {policy: patching(replace("/kinds"), replace("/apiVersionabc"), replace("/metadatas/x"), replace("/statuses"))},
		"a slash inside a key":          {policy: patching(replace("/metadata/labels/example.org~1a"))},
		"nothing":                       {policy: patching(), want: []string{"jsonPatchOverrides: JSONPatchOverrides cannot be empty"}},
		"no path":                       {policy: patching(replace("")), want: []string{"path: path cannot be empty"}},
		"a path without root":           {policy: patching(replace("spec/a")), want: []string{"path: path must start with /"}},
		"the whole object":              {policy: patching(replace("/")), want: []string{"path: path cannot contain empty string"}},
		"a blank part":                  {policy: patching(replace("/spec/ /a")), want: []string{"path: path cannot contain empty string"}},
		"what it is":                    {policy: patching(replace("/apiVersion")), want: []string{"path: cannot override typeMeta fields"}},
		"all of its metadata":           {policy: patching(replace("/metadata")), want: []string{"path: cannot override field metadata"}},
		"its finalizers":                {policy: patching(replace("/metadata/finalizers/0")), want: []string{"path: cannot override metadata fields except annotations and labels"}},
		"its status":                    {policy: patching(replace("/status/phase")), want: []string{"path: cannot override status fields"}},
		"two things wrong with a path":  {policy: patching(replace("/status//a")), want: []string{"path: cannot override status fields", "path: path cannot contain empty string"}},
		"a value that is removed":       {policy: patching(removeValue), want: []string{"value: remove operation cannot have value"}},
		"a deletion with patches": {
			policy: &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
				OverrideType: placementv1beta1.DeleteOverrideType, JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{remove},
			}}},
			want: []string{"jsonPatchOverrides: cannot be set when the override type is Delete"},
		},
		"a deletion": {policy: &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{OverrideType: placementv1beta1.DeleteOverrideType}}}},
		"members by labels": {
			policy: terms(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}),
		},
		"members by properties": {
			policy: terms(placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{}}),
			want:   []string{"propertySelector: only labelSelector is supported", "labelSelector: labelSelector is required"},
		},
		"labels that cannot be": {
			policy: terms(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}),
			want:   []string{"labelSelector.matchLabels: name part must consist of"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			override := clusterOverride("a", clusterRole("x"))
			override.Spec.Policy = tt.policy
			compareProblems(t, tt.want, ValidateClusterResourceOverride(&override, nil))
		})
	}
}

// FuzzPatchPath: a path that is let through does not lead to what an override must
// not change, however it is written.
func FuzzPatchPath(f *testing.F) {
	for _, path := range []string{"", "/", "/spec/a", "/kind", "/metadata/labels/a", "/status", "/metadata~0x", "//", "/metadata/~1labels"} {
		f.Add(path)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	f.Fuzz(func(t *testing.T, path string) {
		if len(patchPathProblems(path)) > 0 {
			return
		}
		parts := strings.Split(path, "/")
		if len(parts) < 2 || parts[0] != "" {
			t.Fatalf("%q is no pointer into an object", path)
		}
		first := unescape.Replace(parts[1])
		if first == "kind" || first == "apiVersion" || first == "status" {
			t.Errorf("%q leads to %s", path, first)
		}
		if first == "metadata" && (len(parts) < 3 || unescape.Replace(parts[2]) != "labels" && unescape.Replace(parts[2]) != "annotations") {
			t.Errorf("%q leads into the metadata", path)
		}
	})
}
