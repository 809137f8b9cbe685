// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var errUnknownKind = errors.New("the hub does not serve it")

func hubScopes(kind schema.GroupVersionKind) (bool, error) {
	switch kind.Kind {
	case "Namespace", "ClusterRole":
		return false, nil
	case "ConfigMap":
		return true, nil
	}
	return false, errUnknownKind
}

func namespaceSelector() []placementv1beta1.ResourceSelectorTerm {
	return []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
}

func withPolicy(policy placementv1beta1.PlacementPolicy) placementv1beta1.PlacementSpec {
	return placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector(), Policy: &policy}
}

func requires(requirements ...placementv1beta1.PropertySelectorRequirement) placementv1beta1.PlacementSpec {
	return withPolicy(placementv1beta1.PlacementPolicy{Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{
			ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{PropertySelector: &placementv1beta1.PropertySelector{MatchExpressions: requirements}}},
		},
	}}})
}

func property(name string, operator placementv1beta1.PropertySelectorOperator, value string) placementv1beta1.PropertySelectorRequirement {
	return placementv1beta1.PropertySelectorRequirement{Name: name, Operator: operator, Values: []string{value}}
}

func TestValidatePlacement(t *testing.T) {
	const nodes = "kubernetes-fleet.io/node-count"
	unparsable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn}}}
	tests := map[string]struct {
		spec       placementv1beta1.PlacementSpec
		namespaced bool
		// want are paths with a part of the message, in order; none means valid.
		want []string
	}{
		"smallest":                 {spec: placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector()}},
		"unknown kind":             {spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Nothing"}}}, want: []string{"spec.resourceSelectors[0]: failed to get GVR of the selector"}},
		"namespaced kind in a CRP": {spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap"}}}, want: []string{"spec.resourceSelectors[0]: a ClusterResourcePlacement selects"}},
		"cluster-scoped kind in a RP": {
			namespaced: true,
			spec:       placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector()},
			want:       []string{"spec.resourceSelectors[0]: a ResourcePlacement selects"},
		},
		"namespaced kind beside a namespace that is cut": {spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
			{Version: "v1", Kind: "Namespace", Name: "shop", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors},
			{Version: "v1", Kind: "ConfigMap"},
		}}},
		"namespaced kind beside one that only looks like a cut namespace": {
			spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
				{Version: "v1", Kind: "ClusterRole", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors},
				{Version: "v1", Kind: "ConfigMap"},
			}},
			want: []string{"spec.resourceSelectors[1]: a ClusterResourcePlacement selects"},
		},
		"name and labels": {
			spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "a", LabelSelector: &metav1.LabelSelector{}}}},
			want: []string{"spec.resourceSelectors[0]: name and labelSelector are mutually exclusive"},
		},
		"label selector that does not parse": {
			spec: placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace",
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}},
			want: []string{"spec.resourceSelectors[0].labelSelector.matchExpressions[0].operator: not a valid selector operator"},
		},
		"cluster selectors that do not parse": {
			spec: withPolicy(placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: ptr.To[int32](1), Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: unparsable}}},
				PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{
					{Weight: 1, Preference: placementv1beta1.ClusterSelectorTerm{LabelSelector: unparsable}},
				},
			}}}),
			want: []string{
				fmt.Sprintf("labelSelector.matchExpressions[0].values: the labelSelector in cluster selector %+v is invalid: ", unparsable),
				fmt.Sprintf("labelSelector.matchExpressions[0].values: the labelSelector in preferred cluster selector %+v is invalid: ", unparsable),
			},
		},
		"PickAll wants no number and no preference": {
			spec: withPolicy(placementv1beta1.PlacementPolicy{NumberOfClusters: ptr.To[int32](1), Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []placementv1beta1.PreferredClusterSelector{{Weight: 1}},
			}}}),
			want: []string{"spec.policy.numberOfClusters: cannot be set when placementType is PickAll", "spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution: a placement of type PickAll"},
		},
		"PickN wants a number": {
			spec: withPolicy(placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN}),
			want: []string{"spec.policy.numberOfClusters: a placement of type PickN"},
		},
		"PickFixed wants distinct names": {
			spec: withPolicy(placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "a", "B"},
				Tolerations: []placementv1beta1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}}),
			want: []string{"spec.policy.tolerations: cannot be set", "spec.policy.clusterNames[1]: Duplicate", "spec.policy.clusterNames[2]: a lowercase RFC 1123 label"},
		},
		"properties that exclude each other": {
			spec: requires(property(nodes, "Gt", "3"), property(nodes, "Lt", "3")),
			want: []string{"spec.policy.affinity.clusterAffinity.requiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[0].propertySelector.matchExpressions: no value"},
		},
		"a property between two bounds": {spec: requires(property(nodes, "Ge", "3"), property(nodes, "Le", "3"))},
		"the only value excluded": {
			spec: requires(property(nodes, "Ge", "3"), property(nodes, "Le", "3"), property(nodes, "Ne", "3")),
			want: []string{"propertySelector.matchExpressions: no value"},
		},
		"two different equals": {
			spec: requires(property(nodes, "Eq", "3"), property(nodes, "Eq", "4")),
			want: []string{"propertySelector.matchExpressions: no value"},
		},
		"an operator that is none": {
			spec: requires(property(nodes, "In", "3")),
			want: []string{"matchExpressions[0].operator: supported values"},
		},
		"a resource property without its sum": {
			spec: requires(property("resources.kubernetes-fleet.io/cpu", "Gt", "3")),
			want: []string{"matchExpressions[0].name: a resource property is"},
		},
		"a property with several slashes in its name": {
			spec: requires(property("kubernetes.azure.com/vm-sizes/Standard_D8s_v3/count", "Ge", "1")),
		},
		"a property with a prefix that is no subdomain": {spec: requires(property("VM_sizes/count", "Ge", "1"))},
		"a property with an empty part of its name": {
			spec: requires(property("kubernetes.azure.com/vm-sizes//count", "Ge", "1")),
			want: []string{"matchExpressions[0].name: name part must be non-empty", "matchExpressions[0].name: name part must consist"},
		},
		"a resource property with a slash in the resource": {
			spec: requires(property("resources.kubernetes-fleet.io/total-example.com/gpu", "Ge", "1")),
			want: []string{"matchExpressions[0].name: a valid label key"},
		},
		"not a quantity": {
			spec: requires(property(nodes, "Gt", "many")),
			want: []string{"matchExpressions[0].values[0]: must be a quantity"},
		},
		"a quantity of a billion digits": {
			spec: requires(property(nodes, "Gt", "1e-99999999")),
			want: []string{"matchExpressions[0].values[0]: must be a quantity"},
		},
		"tolerations": {
			spec: withPolicy(placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{
				{Key: "a b", Operator: corev1.TolerationOpExists},
				{Value: "v"},
				{Key: "k", Value: "v", Operator: corev1.TolerationOpEqual},
				{Key: "k", Value: "v", Operator: corev1.TolerationOpEqual},
			}}),
			want: []string{"spec.policy.tolerations[0].key: name part", "spec.policy.tolerations[1].operator: operator must be Exists", "spec.policy.tolerations[3]: Duplicate"},
		},
		"external with a rolling update": {
			spec: placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector(), Strategy: placementv1beta1.RolloutStrategy{
				Type: placementv1beta1.ExternalStrategy, RollingUpdate: &placementv1beta1.RollingUpdateConfig{MaxSurge: ptr.To(intstr.FromInt32(-1)), UnavailablePeriodSeconds: ptr.To(-1)}}},
			want: []string{"spec.strategy.rollingUpdate: cannot be set", "spec.strategy.rollingUpdate.maxSurge: must be greater", "spec.strategy.rollingUpdate.unavailablePeriodSeconds: must be greater"},
		},
		"server-side settings of a client-side apply": {
			spec: placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector(), Strategy: placementv1beta1.RolloutStrategy{
				ApplyStrategy: &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ClientSideApply, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{}}}},
			want: []string{"spec.strategy.applyStrategy.serverSideApplyConfig: can only be set"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ValidatePlacement(&metav1.ObjectMeta{Name: "p"}, &tt.spec, !tt.namespaced, hubScopes)
			compareProblems(t, tt.want, got)
		})
	}
}

func TestTooLongNameIsRefused(t *testing.T) {
	spec := placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector()}
	got := ValidatePlacement(&metav1.ObjectMeta{Name: strings.Repeat("a", 64)}, &spec, true, hubScopes)
	compareProblems(t, []string{"metadata.name: Too long"}, got)
}

func TestPlacementTypeAndTolerationsHold(t *testing.T) {
	equal := placementv1beta1.Toleration{Key: "k", Value: "v", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}
	changed := equal
	changed.Value = "w"
	exists := placementv1beta1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}
	policy := func(placementType placementv1beta1.PlacementType, tolerations ...placementv1beta1.Toleration) *placementv1beta1.PlacementPolicy {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementType, Tolerations: tolerations}
	}
	tests := map[string]struct {
		older, newer *placementv1beta1.PlacementPolicy
		want         []string
	}{
		"nothing changes":        {older: policy("PickAll", equal), newer: policy("PickAll", equal)},
		"no policy is PickAll":   {older: nil, newer: policy("PickAll")},
		"PickAll is no policy":   {older: policy("PickAll"), newer: nil},
		"no policy to PickN":     {older: nil, newer: policy("PickN"), want: []string{"spec.policy.placementType: placement type is immutable"}},
		"PickAll to PickFixed":   {older: policy("PickAll"), newer: policy("PickFixed"), want: []string{"spec.policy.placementType: placement type is immutable"}},
		"toleration added":       {older: policy("PickAll", equal), newer: policy("PickAll", exists, equal)},
		"toleration removed":     {older: policy("PickAll", equal, exists), newer: policy("PickAll", exists), want: []string{"spec.policy.tolerations: " + tolerationsAppendOnly}},
		"toleration changed":     {older: policy("PickAll", equal), newer: policy("PickAll", changed), want: []string{"spec.policy.tolerations: " + tolerationsAppendOnly}},
		"policy and all removed": {older: policy("PickAll", equal), newer: nil, want: []string{"spec.policy.tolerations: " + tolerationsAppendOnly}},
		"both at once": {older: policy("PickAll", equal), newer: policy("PickN"),
			want: []string{"spec.policy.placementType: placement type is immutable", "spec.policy.tolerations: " + tolerationsAppendOnly}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ValidatePlacementUpdate(&placementv1beta1.PlacementSpec{Policy: tt.older}, &placementv1beta1.PlacementSpec{Policy: tt.newer})
			compareProblems(t, tt.want, got)
		})
	}
}

func TestDefaultsAreTheReferences(t *testing.T) {
	spec := placementv1beta1.PlacementSpec{ResourceSelectors: namespaceSelector()}
	DefaultPlacement(&spec)
	want := placementv1beta1.PlacementSpec{
		ResourceSelectors: namespaceSelector(),
		Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll},
		Strategy: placementv1beta1.RolloutStrategy{
			Type: placementv1beta1.RollingUpdateStrategy,
			RollingUpdate: &placementv1beta1.RollingUpdateConfig{
				MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromString("25%")), UnavailablePeriodSeconds: ptr.To(60),
			},
			ApplyStrategy: &placementv1beta1.ApplyStrategy{
				Type: placementv1beta1.ClientSideApply, ComparisonOption: placementv1beta1.PartialComparison,
				WhenToApply: placementv1beta1.ApplyAlways, WhenToTakeOver: placementv1beta1.TakeOverAlways,
			},
		},
		RevisionHistoryLimit: ptr.To[int32](10),
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("defaults differ (-want +got):\n%s", diff)
	}
	again := spec.DeepCopy()
	DefaultPlacement(again)
	if diff := cmp.Diff(&spec, again); diff != "" {
		t.Errorf("defaulting twice changes more:\n%s", diff)
	}
}

// compareProblems wants, for each problem in order, an error that ends its path
// with the wanted one's and contains its message.
func compareProblems(t *testing.T, want []string, got field.ErrorList) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%v", len(got), len(want), got)
	}
	for i, problem := range got {
		path, message, _ := strings.Cut(want[i], ": ")
		if !strings.HasSuffix(problem.Field, path) || !strings.Contains(problem.ErrorBody(), message) {
			t.Errorf("problem %d is %q, want %q", i, problem.Error(), want[i])
		}
	}
}
