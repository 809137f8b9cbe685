// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Clients of the public API compare the whole status of a placement, but for times and the texts of conditions.
var _ = Describe("The whole status, as clients compare it", func() {
	type status = placementv1beta1.PlacementStatus

	has := func(generation int64, kind string, is metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, ObservedGeneration: generation}
	}
	expect := func(ctx context.Context, name string, want func(generation int64) status) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			crp, err := statusOf(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			ignored := cmp.Options{
				cmpopts.IgnoreFields(metav1.Condition{}, "Message", "LastTransitionTime"), cmpopts.EquateEmpty(),
				cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type }),
			}
			g.Expect(cmp.Diff(want(crp.Generation), crp.Status, ignored)).To(BeEmpty(), "-want +got")
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
	}
	inShop := func(namespace string) []placementv1beta1.ResourceIdentifier {
		return []placementv1beta1.ResourceIdentifier{
			{Version: "v1", Kind: "Namespace", Name: namespace},
			{Version: "v1", Kind: "ConfigMap", Name: "settings", Namespace: namespace},
			{Version: "v1", Kind: "Service", Name: "web", Namespace: namespace},
			{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: namespace},
		}
	}

	It("of a placement that names nobody is that the scheduler has nothing to do", func(ctx SpecContext) {
		shop(ctx, "xn-shop")
		joinAll(ctx, "xn", nil)
		nobody := func(generation int64) status {
			return status{
				ObservedResourceIndex: "0", SelectedResources: inShop("xn-shop"),
				Conditions: []metav1.Condition{has(generation, "ClusterResourcePlacementScheduled", metav1.ConditionUnknown, "SchedulePending")},
			}
		}
		place(ctx, "xn", "xn-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed}
		})
		expect(ctx, "xn", nobody)
		crp, err := statusOf(ctx, "xn")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.Conditions[0].Message).To(ContainSubstring("name the members that it is for"))

		By("naming somebody, and nobody again")
		respec(ctx, "xn", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.ClusterNames = []string{"xn-1"} })
		expectAvailable(ctx, "xn", "0")
		respec(ctx, "xn", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.ClusterNames = nil })
		expect(ctx, "xn", nobody)
		expectOn(ctx, "xn")
	})

	It("of an override that makes an object invalid is that it was overridden, and is not synchronized", func(ctx SpecContext) {
		shop(ctx, "xo-shop")
		joinAll(ctx, "xo", nil)
		create(ctx, ofSettings("xo-shop", "broken", sets("", "/metadata/annotations", `"not a map"`)))
		place(ctx, "xo", "xo-shop", nil)
		expect(ctx, "xo", func(generation int64) status {
			return status{
				ObservedResourceIndex: "0", SelectedResources: inShop("xo-shop"),
				Conditions: []metav1.Condition{
					has(generation, "ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"),
					has(generation, "ClusterResourcePlacementRolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
					has(generation, "ClusterResourcePlacementOverridden", metav1.ConditionTrue, "OverriddenSucceeded"),
					has(generation, "ClusterResourcePlacementWorkSynchronized", metav1.ConditionFalse, "WorkNotSynchronizedYet"),
				},
				PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{
					ClusterName: "xo-1", ObservedResourceIndex: "0",
					ApplicableResourceOverrides: []placementv1beta1.NamespacedName{{Namespace: "xo-shop", Name: "broken-0"}},
					Conditions: []metav1.Condition{
						has(generation, "Scheduled", metav1.ConditionTrue, "Scheduled"),
						has(generation, "RolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
						has(generation, "Overridden", metav1.ConditionTrue, "OverriddenSucceeded"),
						has(generation, "WorkSynchronized", metav1.ConditionFalse, "SyncWorkFailed"),
					},
				}},
			}
		})
		bindings, err := bindingsOf(ctx, "xo")
		Expect(err).NotTo(HaveOccurred())
		Expect(bindings["xo-1"].Status.Conditions).To(ContainElement(And(
			HaveField("Type", "WorkSynchronized"), HaveField("Message", ContainSubstring("ConfigMap xo-shop/settings: the overrides make it an object that no API server takes")))))
	})
})
