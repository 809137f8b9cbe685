// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

func patchOf(path string) placementv1beta1.JSONPatchOverride {
	return placementv1beta1.JSONPatchOverride{Operator: placementv1beta1.JSONPatchReplace, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(`1`)}}
}

func patching(patches ...placementv1beta1.JSONPatchOverride) *placementv1beta1.OverridePolicy {
	return &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		OverrideType: placementv1beta1.JSONPatchOverrideType, JSONPatchOverrides: patches,
	}}}
}

// clusterOverride returns an override with invalid patches unless alter corrects them.
func clusterOverride(roles ...string) *placementv1beta1.ClusterResourceOverride {
	override := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{GenerateName: "override-"}}
	override.Spec.Policy = patching(patchOf("/rules"))
	for _, role := range roles {
		override.Spec.ClusterResourceSelectors = append(override.Spec.ClusterResourceSelectors,
			placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: role})
	}
	if len(roles) == 0 {
		override.Spec.Policy = patching(patchOf("/kind"))
		override.Spec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "nobody"}}
	}
	return override
}

func resourceOverride(configMaps ...string) *placementv1beta1.ResourceOverride {
	override := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{GenerateName: "override-", Namespace: "default"}}
	override.Spec.Policy = patching(patchOf("/data/a"))
	for _, name := range configMaps {
		override.Spec.ResourceSelectors = append(override.Spec.ResourceSelectors, placementv1beta1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: name})
	}
	if len(configMaps) == 0 {
		override.Spec.Policy = patching(patchOf("/kind"))
		override.Spec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "nobody"}}
	}
	return override
}

var _ = Describe("Overrides", func() {
	It("are rejected with all their errors in one response", func(ctx SpecContext) {
		first := clusterOverride("taken")
		Expect(masters.Create(ctx, first)).To(Succeed())
		second := clusterOverride("taken")
		second.Name = "second"
		remove := patchOf("/metadata/labels/a")
		remove.Operator = placementv1beta1.JSONPatchRemove
		second.Spec.Policy = patching(remove, patchOf("/kind"), patchOf("////"))
		second.Spec.Policy.OverrideRules[0].ClusterSelector = &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{
			LabelSelector: &metav1.LabelSelector{}, PropertySelector: &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{}},
		}}}
		selector := second.Spec.ClusterResourceSelectors[0]
		selector.SelectionScope = placementv1beta1.NamespaceWithResources // The schema's default.
		Expect(masters.Create(ctx, second)).To(beInvalid(
			"spec.clusterResourceSelectors[0]", fmt.Sprintf("invalid resource selector %+v: the resource has been selected by both second and %s, which is not supported", selector, first.Name),
			"spec.policy.overrideRules[0].clusterSelector.clusterSelectorTerms[0].propertySelector", "only labelSelector is supported",
			"spec.policy.overrideRules[0].jsonPatchOverrides[0].value", "remove operation cannot have value",
			"spec.policy.overrideRules[0].jsonPatchOverrides[1].path", "cannot override typeMeta fields",
			"spec.policy.overrideRules[0].jsonPatchOverrides[2].path", "path cannot contain empty string",
		))
	})

	DescribeTable("are rejected", func(ctx SpecContext, override client.Object, fieldsAndTexts ...string) {
		Expect(masters.Create(ctx, override)).To(beInvalid(fieldsAndTexts...))
	},
		Entry("one resource selected twice", resourceOverride("twice", "twice"), "spec.resourceSelectors[1]", "already exists, and must be unique"),
		Entry("one cluster-scoped resource selected twice", clusterOverride("twice", "twice"), "spec.clusterResourceSelectors[1]", "already exists, and must be unique"),
		Entry("type Delete with patches", func() client.Object {
			o := resourceOverride("deleted")
			o.Spec.Policy.OverrideRules[0].OverrideType = placementv1beta1.DeleteOverrideType
			return o
		}(), "spec.policy.overrideRules[0].jsonPatchOverrides", "cannot be set when the override type is Delete"),
		Entry("no patches", func() client.Object {
			o := resourceOverride("empty")
			o.Spec.Policy.OverrideRules[0].JSONPatchOverrides = nil
			return o
		}(), "spec.policy.overrideRules[0].jsonPatchOverrides", "cannot be empty"),
		Entry("a resource selected by label", func() client.Object {
			o := clusterOverride("x")
			o.Spec.ClusterResourceSelectors[0].Name, o.Spec.ClusterResourceSelectors[0].LabelSelector = "", &metav1.LabelSelector{}
			return o
		}(), "spec.clusterResourceSelectors[0].labelSelector", "label selector is not supported"),
		Entry("a resource without a name", func() client.Object {
			o := clusterOverride("x")
			o.Spec.ClusterResourceSelectors[0].Name = ""
			return o
		}(), "spec.clusterResourceSelectors[0].name", "resource name is required for resource selection"),
		Entry("a patch of status or protected metadata", func() client.Object {
			o := resourceOverride("status")
			o.Spec.Policy = patching(patchOf("/status/phase"), patchOf("/metadata/finalizers"))
			return o
		}(), "spec.policy.overrideRules[0].jsonPatchOverrides[0].path", "cannot override status fields",
			"spec.policy.overrideRules[0].jsonPatchOverrides[1].path", "cannot override metadata fields except annotations and labels"),
	)

	It("keep their resource when they change, and cannot select another override's", func(ctx SpecContext) {
		one, other := resourceOverride("mine"), resourceOverride("theirs")
		Expect(masters.Create(ctx, one)).To(Succeed())
		Expect(masters.Create(ctx, other)).To(Succeed())
		Expect(change(ctx, masters, one, func(o *placementv1beta1.ResourceOverride) { o.Spec.Policy = patching(patchOf("/data/b")) })).To(Succeed())
		Expect(change(ctx, masters, one, func(o *placementv1beta1.ResourceOverride) { o.Spec.ResourceSelectors[0].Name = "theirs" })).
			To(beInvalid("spec.resourceSelectors[0]", "has been selected by both "+one.Name+" and "+other.Name))
	})

	It("are limited to 100 per namespace", func(ctx SpecContext) {
		crowded := newNamespace(ctx)
		numbered := func(i int) *placementv1beta1.ResourceOverride {
			o := resourceOverride(fmt.Sprint("resource-", i))
			o.Namespace = crowded
			return o
		}
		for i := range validation.MaxOverrides {
			Expect(masters.Create(ctx, numbered(i))).To(Succeed())
		}
		last := numbered(validation.MaxOverrides)
		Expect(masters.Create(ctx, last)).To(beInvalid("metadata.name", "resourceOverride limit has been reached: at most 100 resources can be created"))
		last.Namespace = newNamespace(ctx)
		Expect(masters.Create(ctx, last)).To(Succeed(), "another namespace is below its limit")
	})

	It("are validated in every API version", func(ctx SpecContext) {
		older := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "placement.kubernetes-fleet.io/v1alpha1", "kind": "ClusterResourceOverride", "metadata": map[string]any{"name": "older"},
			"spec": map[string]any{
				"clusterResourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "Namespace", "name": "x"}},
				"policy": map[string]any{"overrideRules": []any{map[string]any{
					"jsonPatchOverrides": []any{map[string]any{"op": "remove", "path": "/apiVersion"}},
				}}},
			},
		}}
		Expect(masters.Create(ctx, older)).To(beInvalid("spec.policy.overrideRules[0].jsonPatchOverrides[0].path", "cannot override typeMeta fields"))
	})
})

var _ = Describe("Disruption of a placement", func() {
	placed := func(ctx SpecContext, policy placementv1beta1.PlacementPolicy) string {
		GinkgoHelper()
		spec := selecting("v1", "Namespace", "shop")
		spec.Policy = &policy
		placement := clusterPlacement(spec)
		Expect(masters.Create(ctx, placement)).To(Succeed())
		return placement.Name
	}
	eviction := func(placement string) *placementv1beta1.ClusterResourcePlacementEviction {
		return &placementv1beta1.ClusterResourcePlacementEviction{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "eviction-"},
			Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: "m1"},
		}
	}

	It("is rejected for PickFixed and for a placement that is being deleted", func(ctx SpecContext) {
		Expect(masters.Create(ctx, eviction("not-there"))).To(Succeed())
		Expect(masters.Create(ctx, eviction(placed(ctx, placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll})))).To(Succeed())
		Expect(masters.Create(ctx, eviction(placed(ctx, placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"m1"}})))).
			To(beInvalid("spec.placementName", "cluster resource placement policy type PickFixed is not supported"))
		Expect(masters.Create(ctx, eviction(leftovers.going.GetName()))).
			To(beInvalid("spec.placementName", "cluster resource placement "+leftovers.going.GetName()+" is being deleted"))
	})

	It("requires a budget that the placement type supports", func(ctx SpecContext) {
		budget := func(name string) *placementv1beta1.ClusterResourcePlacementDisruptionBudget {
			return &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		some := budget(placed(ctx, placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: ptr.To[int32](2)}))
		some.Spec.MaxUnavailable = ptr.To(intstr.FromString("50%"))
		Expect(masters.Create(ctx, some)).To(Succeed())
		notYet := budget("not-there")
		notYet.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
		Expect(masters.Create(ctx, notYet)).To(Succeed())

		all := budget(placed(ctx, placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}))
		all.Spec.MinAvailable = ptr.To(intstr.FromInt32(1))
		Expect(masters.Create(ctx, all)).To(Succeed())
		Expect(change(ctx, masters, all, func(b *placementv1beta1.ClusterResourcePlacementDisruptionBudget) {
			b.Spec.MinAvailable = ptr.To(intstr.FromString("50%"))
		})).To(beInvalid("spec.minAvailable", "policy type PickAll is not supported with min available as a percentage 50%"))
		Expect(change(ctx, masters, all, func(b *placementv1beta1.ClusterResourcePlacementDisruptionBudget) {
			b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, ptr.To(intstr.FromInt32(1))
		})).To(beInvalid("spec.maxUnavailable", "policy type PickAll is not supported with any specified max unavailable 1"))
	})
})
