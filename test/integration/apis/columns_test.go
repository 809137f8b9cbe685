// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/status"
	"fleetgate.io/fleetgate/test/support/expect"
)

func said(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
}

// observedOn is what the gateway observes of a placement on one member, where it is applied
// and available, or not applied.
func observedOn(crp *placementv1beta1.ClusterResourcePlacement, member string, applied metav1.ConditionStatus) *status.Observed {
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: crp.Name + "-0"}}
	policy.Status.ObservedCRPGeneration = crp.Generation
	policy.Status.TargetClusters = []placementv1beta1.ClusterDecision{{ClusterName: member, Selected: true, Reason: "picked"}}
	policy.Status.Conditions = []metav1.Condition{said("Scheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled", "found all")}
	binding := &placementv1beta1.ClusterResourceBinding{}
	binding.Spec.TargetCluster, binding.Spec.SchedulingPolicySnapshotName, binding.Spec.ResourceSnapshotName = member, policy.Name, "snapshot"
	for _, kind := range []string{"RolloutStarted", "Overridden", "WorkSynchronized"} {
		binding.Status.Conditions = append(binding.Status.Conditions, said(kind, metav1.ConditionTrue, "Done", "done"))
	}
	binding.Status.Conditions = append(binding.Status.Conditions, said("Applied", applied, "NotAllWorkHaveBeenApplied", "not applied"))
	if applied == metav1.ConditionTrue {
		binding.Status.Conditions = append(binding.Status.Conditions, said("Available", metav1.ConditionTrue, "AllWorkAreAvailable", "available"))
	}
	return &status.Observed{Placement: crp, Policy: policy, Snapshot: "snapshot", Index: "0", Bindings: []placementv1beta1.BindingObject{binding}}
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

	It("says of a placement that failed, and of one of nothing, where it stands and why", func(ctx SpecContext) {
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
		shop := placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "shop"}
		var observed *status.Observed
		with(ctx, crp, func() {
			observed = observedOn(crp, "edge", metav1.ConditionFalse)
			observed.Resources = []placementv1beta1.ResourceIdentifier{shop}
			crp.Status = *status.Compute(observed)
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterresourceplacements/columns")).To(And(
			HaveKeyWithValue("Scheduled", "True"), HaveKeyWithValue("Applied", "False"), HaveKeyWithValue("Available", "False"),
			HaveKeyWithValue("Members", "0/1"), HaveKeyWithValue("Reason", "ApplyFailed"), HaveKeyWithValue("Message", `on member "edge", not applied`)))

		observed.Resources = nil
		observed.Bindings = observedOn(crp, "edge", metav1.ConditionTrue).Bindings
		crp.Status = *status.Compute(observed)
		Expect(hubClient.Status().Update(ctx, crp)).To(Succeed())
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterresourceplacements/columns")).To(And(
			HaveKeyWithValue("Scheduled", "True"), HaveKeyWithValue("Available", "True"), HaveKeyWithValue("Members", "1/1"),
			HaveKeyWithValue("Reason", "NothingSelected"), HaveKeyWithValue("Message", ContainSubstring("match nothing on the hub"))))
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
			HaveKeyWithValue("Reason", "ClusterResourcePlacementEvictionNotExecuted"), HaveKeyWithValue("Message", "the budget does not allow it")))
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
			HaveKeyWithValue("Message", "Deployment shop/web")))
	})

	It("says of an update run where it stands", func(ctx SpecContext) {
		run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "columns"}}
		run.Spec.PlacementName, run.Spec.StagedRolloutStrategyName = "shop", "canary-first"
		with(ctx, run, func() {
			run.Status.Conditions = []metav1.Condition{
				said("Progressing", metav1.ConditionFalse, "UpdateRunWaiting", "Waiting for the tasks after stage canary")}
		})
		Expect(expect.Cells(ctx, hub.Config(), group+"clusterstagedupdateruns/columns")).To(And(
			HaveKeyWithValue("Placement", "shop"), HaveKeyWithValue("Progressing", "False"),
			HaveKeyWithValue("Message", "Waiting for the tasks after stage canary")))
	})

	It("says of a token whether it is ready, and until when", func(ctx SpecContext) {
		account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "columns"}}
		until := metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		with(ctx, account, func() {
			account.Status.ExpirationTimestamp = &until
			account.Status.Conditions = []metav1.Condition{said("TokenReported", metav1.ConditionTrue, "TokenReported", "reported")}
		})
		Expect(expect.Cells(ctx, hub.Config(), "/apis/authentication.open-cluster-management.io/v1beta1/namespaces/"+namespace+"/managedserviceaccounts/columns")).To(And(
			HaveKeyWithValue("Ready", "True"), HaveKeyWithValue("Expires", "2030-01-02T03:04:05Z")))
	})

	It("shows whether the control plane of a ClusterProfile is healthy", func(ctx SpecContext) {
		profile := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "columns"}}
		profile.Spec.ClusterManager.Name = "fleetgate"
		with(ctx, profile, func() {
			profile.Status.Conditions = []metav1.Condition{said("ControlPlaneHealthy", metav1.ConditionFalse, "Silent", "no heartbeat")}
		})
		Expect(expect.Cells(ctx, hub.Config(), "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/"+namespace+"/clusterprofiles/columns")).To(And(
			HaveKeyWithValue("Healthy", "False"), HaveKeyWithValue("Reason", "Silent")))
	})
})
