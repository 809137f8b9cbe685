// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// printed is what kubectl prints of one object: cells by heading, those of -o wide too.
func printed(ctx context.Context, path string) map[string]string {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(hub.Config())
	Expect(err).NotTo(HaveOccurred())
	raw, err := clientset.Discovery().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	Expect(err).NotTo(HaveOccurred())
	var table metav1.Table
	Expect(json.Unmarshal(raw, &table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return cells
}

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
		Expect(printed(ctx, group+"clusterresourceplacements/columns")).To(And(
			HaveKeyWithValue("Scheduled", "True"), HaveKeyWithValue("Applied", "False"), HaveKeyWithValue("Reason", "ApplyFailed"),
			HaveKeyWithValue("Why-Not", "not applied on 1 cluster(s)")))
	})

	It("says which member a binding and an eviction are about", func(ctx SpecContext) {
		binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "columns-1"}}
		binding.Spec.TargetCluster, binding.Spec.State = "edge", placementv1beta1.BindingBound
		with(ctx, binding, func() {
			binding.Status.Conditions = []metav1.Condition{said("WorkSynchronized", metav1.ConditionFalse, "SyncWorkFailed", "no")}
		})
		Expect(printed(ctx, group+"clusterresourcebindings/columns-1")).To(And(
			HaveKeyWithValue("Member", "edge"), HaveKeyWithValue("WorkSynchronized", "False"), HaveKeyWithValue("Reason", "SyncWorkFailed")))

		eviction := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
		eviction.Spec.PlacementName, eviction.Spec.ClusterName = "shop", "edge"
		with(ctx, eviction, func() {
			eviction.Status.Conditions = []metav1.Condition{
				said("Valid", metav1.ConditionTrue, "ClusterResourcePlacementEvictionValid", "valid"),
				said("Executed", metav1.ConditionFalse, "ClusterResourcePlacementEvictionNotExecuted", "the budget does not allow it"),
			}
		})
		Expect(printed(ctx, group+"clusterresourceplacementevictions/columns")).To(And(
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
		Expect(printed(ctx, group+"namespaces/"+namespace+"/works/columns")).To(And(
			HaveKeyWithValue("Applied", "True"), HaveKeyWithValue("Available", "False"), HaveKeyWithValue("Reason", "SomeManifestsAreNotAvailable"),
			HaveKeyWithValue("Why-Not", "Deployment shop/web")))
	})
})
