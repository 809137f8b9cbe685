// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A placement from the public documentation", func() {
	It("has the documented status, with current names", func(ctx SpecContext) {
		makeNamespace(ctx, "test")
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "test-1"}})).To(Succeed())
		for _, name := range []string{"aks-member-1", "aks-member-2"} {
			join(ctx, name, map[string]string{fleetLabel: "crp-1"})
			agent(name)
		}
		place(ctx, "crp-1", "test", picking(2, nil))
		expectAvailable(ctx, "crp-1", "0")
		crp, err := statusOf(ctx, "crp-1")
		Expect(err).NotTo(HaveOccurred())

		// The three conditions of the documentation; see docs/reference/placement.md.
		placement := brief(crp.Status.Conditions, "", crp.Generation)
		Expect(placement).To(ContainElements(
			"ClusterResourcePlacementScheduled=True/SchedulingPolicyFulfilled",
			"ClusterResourcePlacementWorkSynchronized=True/WorkSynchronized",
			"ClusterResourcePlacementApplied=True/ApplySucceeded",
		))
		Expect(crp.Status.PlacementStatuses).To(HaveLen(2))
		for i, s := range crp.Status.PlacementStatuses {
			name := fmt.Sprintf("aks-member-%d", i+1)
			Expect(s.ClusterName).To(Equal(name))
			Expect(brief(s.Conditions, "", crp.Generation)).To(ContainElements(
				"Scheduled=True/Scheduled", "WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied"))
			Expect(s.Conditions[0].Message).To(Equal(fmt.Sprintf(
				"Successfully scheduled resources for placement in %q (affinity score: 0, topology spread score: 0): picked by scheduling policy", name)))
		}
		Expect(crp.Status.SelectedResources).To(Equal([]placementv1beta1.ResourceIdentifier{
			{Kind: "Namespace", Name: "test", Version: "v1"},
			{Kind: "ConfigMap", Name: "test-1", Namespace: "test", Version: "v1"},
		}))

		By("checking its three events")
		Eventually(func() ([]string, error) {
			var list eventsv1.EventList
			err := hub.List(ctx, &list)
			var told []string
			for _, e := range list.Items {
				if e.Regarding.Name == "crp-1" {
					told = append(told, e.Reason+": "+e.Note)
				}
			}
			return told, err
		}).WithTimeout(soon).Should(ContainElements(
			"PlacementScheduleSuccess: Successfully scheduled the placement",
			"PlacementSyncSuccess: Successfully synchronized the placement",
			HavePrefix("PlacementRolloutCompleted: "),
		))
	})

	It("is rejected with 422 and the field name where the documentation has an object instead of a list", func(ctx SpecContext) {
		preference := map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"critical-level": "1"}}}
		crp := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": placementv1beta1.GroupVersion.String(), "kind": "ClusterResourcePlacement", "metadata": map[string]any{"name": "crp"},
			"spec": map[string]any{
				"resourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": "Namespace", "name": "test"}},
				"policy": map[string]any{"placementType": "PickN", "numberOfClusters": int64(3), "affinity": map[string]any{"clusterAffinity": map[string]any{
					"preferredDuringSchedulingIgnoredDuringExecution": map[string]any{"weight": int64(20), "preference": []any{preference}},
				}}},
			},
		}}
		Expect(hub.Create(ctx, crp)).To(And(Satisfy(apierrors.IsInvalid),
			MatchError(ContainSubstring("spec.policy.affinity.clusterAffinity.preferredDuringSchedulingIgnoredDuringExecution"))))
	})

	It("keeps revisionHistoryLimit revisions", func(ctx SpecContext) {
		shop(ctx, "qa-shop")
		joinAll(ctx, "qa", nil)
		place(ctx, "qa", "qa-shop", nil) // The default is ten.
		expectAvailable(ctx, "qa", "0")
		for i := range 12 {
			changeSettings(ctx, "qa-shop", fmt.Sprint("colour-", i))
			expectAvailable(ctx, "qa", fmt.Sprint(i+1))
		}
		Eventually(func() ([]string, error) {
			var list placementv1beta1.ClusterResourceSnapshotList
			err := hub.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "qa"})
			var indices []string
			for _, s := range list.Items {
				indices = append(indices, s.Labels[placementv1beta1.ResourceIndexLabel])
			}
			return indices, err
		}).WithTimeout(soon).WithPolling(often).Should(ConsistOf("3", "4", "5", "6", "7", "8", "9", "10", "11", "12"))
	})
})
