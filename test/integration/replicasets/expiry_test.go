// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

// complete sets condition Complete of a ManifestWork.
func complete(ctx context.Context, work *workv1.ManifestWork, status metav1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func() error {
		if err := hubClient.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1.ConditionComplete, Status: status, Reason: "Spec"})
		return hubClient.Status().Update(ctx, work)
	}).Should(Succeed())
}

var _ = Describe("A ManifestWork with ttlSecondsAfterFinished", func() {
	spec := template("blue")
	spec.DeleteOption = &workv1.DeleteOption{TTLSecondsAfterFinished: ptr.To[int64](2)}

	It("is deleted after it has been Complete for its TTL and not before", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: b.clusters[0], Name: "job"}, Spec: spec}
		stays := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: b.clusters[0], Name: "no-end"}, Spec: template("blue")}
		Expect(hubClient.Create(ctx, work)).To(Succeed())
		Expect(hubClient.Create(ctx, stays)).To(Succeed())
		complete(ctx, stays, yes)
		complete(ctx, work, no)
		Consistently(gone(ctx, work)).Should(BeFalse())
		complete(ctx, work, yes)
		Eventually(gone(ctx, work)).Should(BeTrue())
		Expect(gone(ctx, stays)()).To(BeFalse())
	})

	It("stays if it belongs to a ManifestWorkReplicaSet", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		b.place(ctx, "p", b.clusters)
		now := *spec.DeepCopy()
		now.DeleteOption.TTLSecondsAfterFinished = ptr.To[int64](0)
		set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "jobs"}, Spec: workv1alpha1.ManifestWorkReplicaSetSpec{
			ManifestWorkTemplate: now, PlacementRefs: []workv1alpha1.LocalPlacementReference{everywhere("p")},
		}}
		Expect(hubClient.Create(ctx, set)).To(Succeed())
		Eventually(colours(ctx, set)).Should(HaveLen(1))
		work := workIn(ctx, set, b.clusters[0])
		complete(ctx, work, yes)
		Consistently(func() any { return workIn(ctx, set, b.clusters[0]).UID }).Should(Equal(work.UID))
	})
})
