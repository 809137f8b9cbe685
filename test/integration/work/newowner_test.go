// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("An object that passes from one Work to another", func() {
	// of makes a Work part of a placement, for a snapshot.
	of := func(work *placementv1beta1.Work, binding, snapshot string) {
		work.Labels = map[string]string{
			placementv1beta1.ParentBindingLabel:               binding,
			placementv1beta1.ParentResourceSnapshotIndexLabel: snapshot,
		}
	}
	becomePart := func(ctx SpecContext, name, binding, snapshot string, texts ...string) {
		GinkgoHelper()
		updateWork(ctx, name, func(work *placementv1beta1.Work) {
			of(work, binding, snapshot)
			work.Spec.Workload.Manifests = manifests(texts...)
		})
	}

	It("is never deleted when a placement is split into other Works", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		first, second, third := "first-"+ns, "second-"+ns, "third-"+ns
		careful := &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
		createWork(ctx, first, careful, build.ConfigMapText(ns, "a"), build.ConfigMapText(ns, "moves"))
		createWork(ctx, second, careful, build.ConfigMapText(ns, "b"))
		becomePart(ctx, first, "cut-"+ns, "1", build.ConfigMapText(ns, "a"), build.ConfigMapText(ns, "moves"), build.ConfigMapText(ns, "left"))
		becomePart(ctx, second, "cut-"+ns, "1", build.ConfigMapText(ns, "b"))
		Eventually(reported(ctx, first)).Should(beDone())
		Eventually(reported(ctx, second)).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "moves").UID
		seen := expect.DeletedConfigMaps(ctx, build.Unlimited(member.Config()), ns)
		ownedBy := func(work string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				object := expect.ConfigMap(ctx, memberClient, ns, "moves")
				g.Expect(object.UID).To(Equal(before))
				g.Expect(object.OwnerReferences).To(HaveExactElements(HaveField("Name", work)))
			}).Should(Succeed())
			Eventually(reported(ctx, work)).Should(beDone())
			Eventually(ledger(ctx, work)).Should(ContainElement("moves"))
		}

		By("leaving the first before the second has got it")
		becomePart(ctx, first, "cut-"+ns, "2", build.ConfigMapText(ns, "a"))
		Eventually(reported(ctx, first)).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "moves").DeletionTimestamp).To(BeNil())
		becomePart(ctx, second, "cut-"+ns, "2", build.ConfigMapText(ns, "b"), build.ConfigMapText(ns, "moves"))
		ownedBy(second)
		Eventually(expect.Data(ctx, memberClient, ns, "left")).Should(BeNil(), "no Work contains it any more")

		By("leaving the second for a third, which is new, while that is deleted")
		createWork(ctx, third, careful, build.ConfigMapText(ns, "moves"))
		becomePart(ctx, third, "cut-"+ns, "2", build.ConfigMapText(ns, "moves"))
		removeWork(ctx, second)
		ownedBy(third)
		Eventually(seen.Names).Should(ContainElement("b"), "the watch reports deletions")
		Expect(seen.Names()).NotTo(ContainElement("moves"))
	})

	It("is never deleted when another placement with the object replaces the first", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "goes-"+ns, nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b"))
		Eventually(reported(ctx, "goes-"+ns)).Should(beDone())
		createWork(ctx, "stays-"+ns, nil, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reportedOf(ctx, "stays-"+ns)).Should(HaveExactElements(refused("FailedToTakeOver")))
		before := expect.ConfigMap(ctx, memberClient, ns, "a").UID
		removeWork(ctx, "goes-"+ns)
		Eventually(reported(ctx, "stays-"+ns)).Should(beDone())
		after := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(after.UID).To(Equal(before))
		Expect(after.Data).To(Equal(map[string]string{"x": "2"}))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
	})
})
