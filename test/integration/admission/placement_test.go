// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const appendOnly = "tolerations have been updated/deleted, only additions to tolerations are allowed"

var _ = Describe("Placements", func() {
	var (
		noSchedule = placementv1beta1.Toleration{Key: "k", Value: "v", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule}
		everything = placementv1beta1.Toleration{Operator: corev1.TolerationOpExists}
	)
	withPolicy := func(policy placementv1beta1.PlacementPolicy) *placementv1beta1.ClusterResourcePlacement {
		spec := selecting("v1", "Namespace", "shop")
		spec.Policy = &policy
		return clusterPlacement(spec)
	}

	It("gets the defaults of the public API", func(ctx SpecContext) {
		placement := withPolicy(placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{{Key: "k", Value: "v"}}})
		placement.Spec.Policy.PlacementType = ""
		Expect(masters.Create(ctx, placement)).To(Succeed())
		Expect(placement.Spec.Policy.PlacementType).To(Equal(placementv1beta1.PickAll))
		Expect(placement.Spec.Policy.Tolerations[0].Operator).To(Equal(corev1.TolerationOpEqual))

		bare := clusterPlacement(selecting("v1", "Namespace", "shop"))
		Expect(masters.Create(ctx, bare)).To(Succeed())
		Expect(bare.Spec.Policy).To(Equal(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}))
		Expect(bare.Spec.Strategy.Type).To(Equal(placementv1beta1.RollingUpdateStrategy))
		Expect(bare.Spec.Strategy.RollingUpdate).To(Equal(&placementv1beta1.RollingUpdateConfig{
			MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromString("25%")), UnavailablePeriodSeconds: ptr.To(60),
		}))
		Expect(bare.Spec.Strategy.ApplyStrategy).To(Equal(&placementv1beta1.ApplyStrategy{
			Type: placementv1beta1.ClientSideApply, ComparisonOption: placementv1beta1.PartialComparison,
			WhenToApply: placementv1beta1.ApplyAlways, WhenToTakeOver: placementv1beta1.TakeOverAlways,
		}))
		Expect(bare.Spec.RevisionHistoryLimit).To(Equal(ptr.To[int32](10)))
	})

	It("rejects a change of the placement type from every user", func(ctx SpecContext) {
		placement := withPolicy(placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll})
		Expect(masters.Create(ctx, placement)).To(Succeed())
		for _, as := range []client.Client{masters, gateway.client} {
			err := change(ctx, as, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Spec.Policy.PlacementType, p.Spec.Policy.NumberOfClusters = placementv1beta1.PickN, ptr.To[int32](1)
			})
			Expect(err).To(beInvalid("spec.policy", "placement type is immutable"))
			err = change(ctx, as, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
				p.Spec.Policy.PlacementType, p.Spec.Policy.ClusterNames = placementv1beta1.PickFixed, []string{"m1"}
			})
			Expect(err).To(beInvalid("spec.policy", "placement type is immutable"))
		}
	})

	It("treats a missing policy as PickAll when the type changes", func(ctx SpecContext) {
		err := change(ctx, masters, leftovers.withoutType, func(p *unstructured.Unstructured) {
			policy := map[string]any{"placementType": "PickN", "numberOfClusters": int64(1)}
			Expect(unstructured.SetNestedMap(p.Object, policy, "spec", "policy")).To(Succeed())
		})
		Expect(err).To(beInvalid("spec.policy.placementType", "placement type is immutable"))
	})

	It("accepts new tolerations and rejects their removal", func(ctx SpecContext) {
		placement := withPolicy(placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{noSchedule}})
		Expect(masters.Create(ctx, placement)).To(Succeed())
		set := func(tolerations ...placementv1beta1.Toleration) error {
			return change(ctx, masters, placement, func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Tolerations = tolerations })
		}
		for field, altered := range map[string]placementv1beta1.Toleration{
			"key":      {Key: "other", Value: "v", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
			"value":    {Key: "k", Value: "other", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
			"operator": {Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			"effect":   {Key: "k", Value: "v", Operator: corev1.TolerationOpEqual},
		} {
			Expect(set(altered)).To(beInvalid("spec.policy.tolerations", appendOnly), field)
		}
		Expect(set()).To(beInvalid("spec.policy.tolerations", appendOnly))
		Expect(set(everything)).To(beInvalid("spec.policy.tolerations", appendOnly))

		Expect(set(everything, noSchedule)).To(Succeed())
		Expect(set(everything)).To(beInvalid("spec.policy.tolerations", appendOnly))
		Expect(set(noSchedule, everything)).To(Succeed(), "order does not matter")
	})

	It("is validated when it is written through v1", func(ctx SpecContext) {
		placement := withPolicy(placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{noSchedule}})
		Expect(masters.Create(ctx, placement)).To(Succeed())
		older := leftover(placement.Name, "Namespace")
		err := change(ctx, masters, older, func(p *unstructured.Unstructured) {
			Expect(p.GetAPIVersion()).To(Equal("placement.kubernetes-fleet.io/v1"))
			unstructured.RemoveNestedField(p.Object, "spec", "policy", "tolerations")
		})
		Expect(err).To(beInvalid("spec.policy.tolerations", appendOnly))
		Expect(masters.Create(ctx, leftover("new-through-v1", "Nothing"))).To(beInvalid("spec.resourceSelectors[0]", "failed to get GVR of the selector"))

		defaulted := leftover("defaulted-through-v1", "Namespace")
		Expect(masters.Create(ctx, defaulted)).To(Succeed())
		limit, _, err := unstructured.NestedInt64(defaulted.Object, "spec", "revisionHistoryLimit")
		Expect(err).NotTo(HaveOccurred())
		Expect(limit).To(BeEquivalentTo(10))
	})

	It("is rejected with all errors at once", func(ctx SpecContext) {
		placement := withPolicy(placementv1beta1.PlacementPolicy{Tolerations: []placementv1beta1.Toleration{noSchedule}})
		Expect(masters.Create(ctx, placement)).To(Succeed())
		err := change(ctx, masters, placement, func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors,
				placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Nothing"}, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap"})
			p.Spec.Policy.Tolerations = []placementv1beta1.Toleration{{Key: "not a key", Operator: corev1.TolerationOpExists}}
			p.Spec.Strategy.ApplyStrategy.ServerSideApplyConfig = &placementv1beta1.ServerSideApplyConfig{}
		})
		Expect(err).To(beInvalid(
			"spec.policy.tolerations", appendOnly,
			"spec.resourceSelectors[1]", "failed to get GVR of the selector",
			"spec.resourceSelectors[2]", "a ClusterResourcePlacement selects cluster-scoped resources",
			"spec.policy.tolerations[0].key", "name part",
			"spec.strategy.applyStrategy.serverSideApplyConfig", "can only be set when",
		))
		long := withPolicy(placementv1beta1.PlacementPolicy{})
		long.ObjectMeta = metav1.ObjectMeta{Name: strings.Repeat("a", 64)}
		Expect(masters.Create(ctx, long)).To(beInvalid("metadata.name", "63"))
	})

	It("rejects selectors outside its scope", func(ctx SpecContext) {
		Expect(masters.Create(ctx, resourcePlacement(selecting("v1", "Namespace", "shop")))).
			To(beInvalid("spec.resourceSelectors[0]", "a ResourcePlacement selects resources of its own namespace"))
		Expect(masters.Create(ctx, resourcePlacement(selecting("v1", "ConfigMap", "settings")))).To(Succeed())
	})

	It("has the same rules when namespaced, where the schema lets its reporting scope change", func(ctx SpecContext) {
		spec := selecting("v1", "ConfigMap", "settings")
		spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll, Tolerations: []placementv1beta1.Toleration{noSchedule}}
		placement := resourcePlacement(spec)
		Expect(masters.Create(ctx, placement)).To(Succeed())
		Expect(change(ctx, masters, placement, func(p *placementv1beta1.ResourcePlacement) {
			p.Spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
		})).To(Succeed())
		Expect(change(ctx, masters, placement, func(p *placementv1beta1.ResourcePlacement) {
			p.Spec.Policy.Tolerations = nil
			p.Spec.ResourceSelectors[0].Kind = "Nothing"
		})).To(beInvalid("spec.policy.tolerations", appendOnly, "spec.resourceSelectors[0]", "failed to get GVR of the selector"))
	})

	It("accepts label changes when the hub no longer serves the selected kind", func(ctx SpecContext) {
		Expect(change(ctx, masters, leftovers.unknownKind, func(p *unstructured.Unstructured) {
			p.SetLabels(map[string]string{"team": "x"})
		})).To(Succeed())
		Expect(change(ctx, masters, leftovers.unknownKind, func(p *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(p.Object, int64(3), "spec", "revisionHistoryLimit")).To(Succeed())
		})).To(beInvalid("spec.resourceSelectors[0]", "Vanished"))
	})

	It("is rejected while the gateway is down, but its finalizers can be removed", Serial, func(ctx SpecContext) {
		gateway.stop()
		DeferCleanup(func() {
			if gateway.cancel == nil {
				gateway.start()
			}
		})
		Expect(masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")))).
			To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(change(ctx, masters, leftovers.released, func(p *unstructured.Unstructured) { p.SetFinalizers(nil) })).To(Succeed())
		Eventually(func() error {
			return masters.Get(ctx, client.ObjectKeyFromObject(leftovers.released), leftovers.released.DeepCopy())
		}).
			Should(Satisfy(isNotFound))

		gateway.start()
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		Eventually(func() error { return masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop"))) }).Should(Succeed())
	})
})
