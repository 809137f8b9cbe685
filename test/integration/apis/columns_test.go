// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/expect"
)

func said(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

var _ = Describe("What kubectl get prints", func() {
	const group = "/apis/placement.kubernetes-fleet.io/v1beta1/"
	with := func(ctx context.Context, object client.Object, tell func()) {
		GinkgoHelper()
		Expect(hubClient.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hubClient.Delete(ctx, object)).To(Succeed()) })
		tell()
		Expect(hubClient.Status().Update(ctx, object)).To(Succeed())
	}

	It("says of a placement that failed where it stands and why", func(ctx SpecContext) {
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
		with(ctx, crp, func() {
			crp.Status.Conditions = []metav1.Condition{
				said("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled", "found all"),
				said("ClusterResourcePlacementApplied", metav1.ConditionFalse, "ApplyFailed", "not applied on 1 cluster(s)"),
			}
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterresourceplacements/columns")).To(And(
			HaveKeyWithValue("Scheduled", "True"), HaveKeyWithValue("Applied", "False"), HaveKeyWithValue("Reason", "ApplyFailed"),
			HaveKeyWithValue("Why-Not", "not applied on 1 cluster(s)")))
	})

	It("says which member a binding and an eviction are about", func(ctx SpecContext) {
		binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "columns-1"}}
		binding.Spec.TargetCluster, binding.Spec.State = "edge", placementv1beta1.BindingBound
		with(ctx, binding, func() {
			binding.Status.Conditions = []metav1.Condition{said("WorkSynchronized", metav1.ConditionFalse, "SyncWorkFailed", "no")}
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterresourcebindings/columns-1")).To(And(
			HaveKeyWithValue("Member", "edge"), HaveKeyWithValue("WorkSynchronized", "False"), HaveKeyWithValue("Reason", "SyncWorkFailed")))

		eviction := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
		eviction.Spec.PlacementName, eviction.Spec.ClusterName = "shop", "edge"
		with(ctx, eviction, func() {
			eviction.Status.Conditions = []metav1.Condition{
				said("Valid", metav1.ConditionTrue, "ClusterResourcePlacementEvictionValid", "valid"),
				said("Executed", metav1.ConditionFalse, "ClusterResourcePlacementEvictionNotExecuted", "the budget does not allow it"),
			}
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterresourceplacementevictions/columns")).To(And(
			HaveKeyWithValue("Placement", "shop"), HaveKeyWithValue("Member", "edge"), HaveKeyWithValue("Executed", "False"),
			HaveKeyWithValue("Reason", "ClusterResourcePlacementEvictionNotExecuted"), HaveKeyWithValue("Why", "the budget does not allow it")))
	})

	It("says of a Work whether it is applied and available", func(ctx SpecContext) {
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "columns"}}
		with(ctx, work, func() {
			work.Status.Conditions = []metav1.Condition{
				said("Applied", metav1.ConditionTrue, "AllManifestsApplied", "applied"),
				said("Available", metav1.ConditionFalse, "SomeManifestsAreNotAvailable", "Deployment shop/web"),
			}
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"namespaces/"+namespace+"/works/columns")).To(And(
			HaveKeyWithValue("Applied", "True"), HaveKeyWithValue("Available", "False"), HaveKeyWithValue("Reason", "SomeManifestsAreNotAvailable"),
			HaveKeyWithValue("Why-Not", "Deployment shop/web")))
	})
})
