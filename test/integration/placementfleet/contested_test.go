// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("Two placements of one object that both allow co-ownership", func() {
	It("leave it to the first, and the second has the status that upstream's clients compare", func(ctx SpecContext) {
		shop(ctx, "pc")
		sharing := func(spec *placementv1beta1.PlacementSpec) {
			fixed("member-1")(spec)
			spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
		}
		place(ctx, "pc", sharing)
		Eventually(available).WithContext(ctx).WithArguments("pc").Should(BeTrue())
		second := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "pc-too"}}
		second.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "pc"}}
		sharing(&second.Spec)
		create(ctx, second)

		resources := []placementv1beta1.ResourceIdentifier{
			{Version: "v1", Kind: "Namespace", Name: "pc"}, {Version: "v1", Kind: "ConfigMap", Name: "settings", Namespace: "pc"},
		}
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
			has := func(kind string, is metav1.ConditionStatus, reason string) metav1.Condition {
				return metav1.Condition{Type: kind, Status: is, Reason: reason, ObservedGeneration: second.Generation}
			}
			var failed []placementv1beta1.FailedResourcePlacement
			for _, resource := range resources {
				no := metav1.Condition{Type: "Applied", Status: metav1.ConditionFalse, Reason: "FailedToTakeOver"}
				failed = append(failed, placementv1beta1.FailedResourcePlacement{ResourceIdentifier: resource, Condition: no})
			}
			want := placementv1beta1.PlacementStatus{
				ObservedResourceIndex: "0", SelectedResources: resources,
				Members: "0/1", Available: metav1.ConditionFalse, Reason: "ApplyFailed", // Upstream's clients do not see these fields.
				Conditions: []metav1.Condition{
					has("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"),
					has("ClusterResourcePlacementRolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
					has("ClusterResourcePlacementOverridden", metav1.ConditionTrue, "NoOverrideSpecified"),
					has("ClusterResourcePlacementWorkSynchronized", metav1.ConditionTrue, "WorkSynchronized"),
					has("ClusterResourcePlacementApplied", metav1.ConditionFalse, "ApplyFailed"),
				},
				PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{
					ClusterName: "member-1", ObservedResourceIndex: "0", FailedPlacements: failed,
					Conditions: []metav1.Condition{
						has("Scheduled", metav1.ConditionTrue, "Scheduled"),
						has("RolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
						has("Overridden", metav1.ConditionTrue, "NoOverrideSpecified"),
						has("WorkSynchronized", metav1.ConditionTrue, "AllWorkSynced"),
						has("Applied", metav1.ConditionFalse, "NotAllWorkHaveBeenApplied"),
					},
				}},
			}
			ignored := cmp.Options{
				cmpopts.IgnoreFields(metav1.Condition{}, "Message", "LastTransitionTime"), cmpopts.EquateEmpty(),
				cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type }),
			}
			got := second.Status.DeepCopy()
			got.Message = ""
			for _, member := range got.PlacementStatuses {
				for i := range member.FailedPlacements {
					member.FailedPlacements[i].Condition.ObservedGeneration = 0 // This is the generation of the object on the member.
				}
			}
			g.Expect(cmp.Diff(want, *got, ignored)).To(BeEmpty(), "-want +got")
		}).WithContext(ctx).Should(Succeed())
		settings := &corev1.ConfigMap{}
		Expect(members["member-1"].Get(ctx, client.ObjectKey{Namespace: "pc", Name: "settings"}, settings)).To(Succeed())
		Expect(settings.OwnerReferences).To(HaveExactElements(HaveField("Name", "pc-work")))

		By("deleting the first, and the second gets the object")
		first := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "pc"}}
		Expect(hub.Delete(ctx, first)).To(Succeed())
		Eventually(available).WithContext(ctx).WithArguments("pc-too").Should(BeTrue())
	})
})
