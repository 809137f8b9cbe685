// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/retention"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// told is the last sum of retained objects that the suite's agent reported.
var told atomic.Pointer[retention.Summary]

func tellHeld(held retention.Summary) { told.Store(&held) }

// holding returns the number of retained objects; release looks up their id.
func holding() retention.Summary {
	if held := told.Load(); held != nil {
		return retention.Summary{Works: held.Works, Objects: held.Objects, Example: held.Example}
	}
	return retention.Summary{}
}

var _ = Describe("A hub that was restored to an earlier state", func() {
	It("lets a Work that reappears adopt its retained objects unchanged", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hold-again", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "hold-again")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "b")
		vanish(ctx, "hold-again")
		Eventually(heldSince(ctx, "hold-again")).ShouldNot(BeEmpty())
		Eventually(holding).Should(Equal(retention.Summary{Works: 1, Objects: 2, Example: "hold-again"}))

		By("re-creating it with fewer objects, possibly by mistake")
		createWork(ctx, "hold-again", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "hold-again")).Should(beDone())
		Eventually(conditionOf(ctx, "hold-again", placementv1beta1.ConditionRetained)).Should(Equal("True/" + placementv1beta1.ReasonHubRestored))
		Eventually(holding).Should(Equal(retention.Summary{Works: 1, Objects: 1, Example: "hold-again"}))
		Expect(heldSince(ctx, "hold-again")()).NotTo(BeEmpty())

		By("re-creating it with all objects")
		changeWork(ctx, "hold-again", build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(heldSince(ctx, "hold-again")).Should(BeEmpty())
		Eventually(conditionOf(ctx, "hold-again", placementv1beta1.ConditionRetained)).Should(BeEmpty())
		Eventually(holding).Should(Equal(retention.Summary{}))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "b").UID).To(Equal(before.UID))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "b").ResourceVersion).To(Equal(before.ResourceVersion))

		By("removing objects that leave it afterwards")
		changeWork(ctx, "hold-again", build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
	})

	It("removes nothing that an earlier generation of a Work lacks", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hold-older", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "hold-older")).Should(beDone())
		agent.Stop()
		DeferCleanup(restartAgent)
		work := getWork(ctx, "hold-older")
		Expect(getRecord(ctx, "hold-older").Annotations[apply.ObservedWorkAnnotation]).To(Equal(fmt.Sprintf("%s/%d", work.UID, work.Generation)))
		// As if the Work had been changed often, and a restore had lost these changes.
		setObserved(ctx, work, 1000)
		changeWork(ctx, "hold-older", build.ConfigMapText(ns, "a", "x", "1"))

		agent = startAgent(member.Config())
		Eventually(conditionOf(ctx, "hold-older", placementv1beta1.ConditionRetained)).Should(Equal("True/" + placementv1beta1.ReasonHubRestored))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).NotTo(BeNil())

		By("continuing with the wanted objects")
		changeWork(ctx, "hold-older", build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2"}))
		Eventually(reported(ctx, "hold-older")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "b")()).NotTo(BeNil())

		release(ctx)
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Eventually(conditionOf(ctx, "hold-older", placementv1beta1.ConditionRetained)).Should(BeEmpty())
		Expect(heldSince(ctx, "hold-older")()).To(BeEmpty())
	})

	It("removes nothing although the Work has passed the recorded generation", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hold-same", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "hold-same")).Should(beDone())
		changeWork(ctx, "hold-same", build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(expect.Data(ctx, memberClient, ns, "b")).ShouldNot(BeNil())
		Eventually(reported(ctx, "hold-same")).Should(beDone())
		epoch := getWork(ctx, "hold-same").Annotations[placementv1beta1.EpochAnnotation]
		Expect(epoch).To(HavePrefix(fmt.Sprintf("%d/", getWork(ctx, "hold-same").Generation)))
		Expect(getRecord(ctx, "hold-same").Annotations).To(HaveKeyWithValue(placementv1beta1.EpochAnnotation, epoch))
		agent.Stop()
		DeferCleanup(restartAgent)
		loseEpoch(ctx, "hold-same")
		changeWork(ctx, "hold-same", build.ConfigMapText(ns, "a", "x", "2"))
		// A real hub would have continued the generation from the backup.
		work := getWork(ctx, "hold-same")
		setObserved(ctx, work, work.Generation)

		agent = startAgent(member.Config())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2"}))
		Eventually(conditionOf(ctx, "hold-same", placementv1beta1.ConditionRetained)).Should(Equal("True/" + placementv1beta1.ReasonHubRestored))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).NotTo(BeNil())

		By("adding a new object and removing it again")
		changeWork(ctx, "hold-same", build.ConfigMapText(ns, "a", "x", "2"), build.ConfigMapText(ns, "c", "x", "1"))
		Eventually(expect.Data(ctx, memberClient, ns, "c")).ShouldNot(BeNil())
		release(ctx)
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Eventually(conditionOf(ctx, "hold-same", placementv1beta1.ConditionRetained)).Should(BeEmpty())
		changeWork(ctx, "hold-same", build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(expect.Data(ctx, memberClient, ns, "c")).Should(BeNil())
	})

	It("deletes the objects of a deleted Work and keeps retained ones", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hold-deleted", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "hold-deleted")).Should(beDone())
		changeWork(ctx, "hold-deleted", build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "hold-deleted")).Should(beDone())
		agent.Stop()
		DeferCleanup(restartAgent)
		loseEpoch(ctx, "hold-deleted")
		changeWork(ctx, "hold-deleted", build.ConfigMapText(ns, "a", "x", "1"))
		Expect(hubClient.Delete(ctx, getWork(ctx, "hold-deleted"))).To(Succeed())

		agent = startAgent(member.Config())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
		Eventually(expect.Gone(ctx, hubClient, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "hold-deleted"}})).Should(BeTrue())
		Eventually(holding).Should(Equal(retention.Summary{Works: 1, Objects: 1, Example: "hold-deleted"}))
		Expect(ledger(ctx, "hold-deleted")()).To(ConsistOf("b"))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).NotTo(BeNil())

		release(ctx)
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Eventually(expect.Gone(ctx, memberClient, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "hold-deleted"}})).Should(BeTrue())
		Eventually(holding).Should(Equal(retention.Summary{}))
	})

	It("hands a retained object to another Work that wants it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "hold-first", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "hold-first")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		vanish(ctx, "hold-first")
		Eventually(heldSince(ctx, "hold-first")).ShouldNot(BeEmpty())

		createWork(ctx, "hold-second", nil, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reported(ctx, "hold-second")).Should(beDone())
		after := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.OwnerReferences).To(HaveExactElements(HaveField("Name", "hold-second")))
		Eventually(expect.Gone(ctx, memberClient, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "hold-first"}})).Should(BeTrue())
		Eventually(holding).Should(Equal(retention.Summary{}))
	})
})

var _ = Describe("A hub that replaces a lost hub", func() {
	It("adopts the objects of the lost hub when an administrator says so, and reports the others as retained", func(ctx SpecContext) {
		const gone, present = "uid-of-the-hub-that-is-gone", "uid-of-this-hub"
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "former", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		createWork(ctx, "former-lost", nil, build.ConfigMapText(ns, "c", "x", "1"))
		Eventually(reported(ctx, "former")).Should(beDone())
		Eventually(reported(ctx, "former-lost")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		agent.Stop()
		DeferCleanup(restartAgent)
		for _, name := range []string{"former", "former-lost"} {
			vanish(ctx, name)
			Expect(memberClient.Patch(ctx, getRecord(ctx, name), expect.MergePatch(fmt.Sprintf(
				`{"metadata":{"annotations":{%q:%q,%q:"of-before"}}}`, apply.HubAnnotation, gone, apply.MembershipAnnotation)))).To(Succeed())
		}
		tellMember(ctx, clusterv1beta1.AnnotationHub, present)
		createWork(ctx, "former", nil, build.ConfigMapText(ns, "a", "x", "1"))

		agent = startAgent(member.Config())
		Eventually(reported(ctx, "former")).Should(beRefused())
		Expect(message(ctx, "former", 0, placementv1beta1.ConditionApplied)).To(ContainSubstring(clusterv1beta1.AnnotationFormerHub + "=" + gone))
		tellMember(ctx, clusterv1beta1.AnnotationFormerHub, gone)
		Eventually(reported(ctx, "former")).Should(beDone())
		after := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "it needs no write")
		Eventually(holding).Should(Equal(retention.Summary{Works: 2, Objects: 2, Example: "former"}))
		Expect(getRecord(ctx, "former").Annotations).To(HaveKeyWithValue(apply.HubAnnotation, present))

		release(ctx)
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Eventually(expect.Data(ctx, memberClient, ns, "c")).Should(BeNil())
		Eventually(holding).Should(Equal(retention.Summary{}))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
		removeWork(ctx, "former") // while the hub still has another UID
	})
})

// vanish deletes a Work without its finalizer, which no working hub does.
func vanish(ctx SpecContext, name string) {
	GinkgoHelper()
	work := getWork(ctx, name)
	// In this order a running agent cannot see a regular deletion.
	Eventually(func() error {
		if err := hubClient.Patch(ctx, work, expect.MergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
			return err
		}
		return hubClient.Delete(ctx, work)
	}).Should(Succeed())
	Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
}

// loseEpoch removes the epoch of a Work on the hub, as a restore does.
func loseEpoch(ctx SpecContext, name string) {
	GinkgoHelper()
	Expect(hubClient.Patch(ctx, getWork(ctx, name), expect.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, placementv1beta1.EpochAnnotation)))).To(Succeed())
}

// setObserved changes the generation of a Work that the member recorded.
func setObserved(ctx SpecContext, work *placementv1beta1.Work, generation int64) {
	GinkgoHelper()
	Expect(memberClient.Patch(ctx, getRecord(ctx, work.Name), expect.MergePatch(fmt.Sprintf(
		`{"metadata":{"annotations":{%q:"%s/%d","fleetgate.io/work-seen":null}}}`, apply.ObservedWorkAnnotation, work.UID, generation)))).To(Succeed())
}

// heldSince returns the start time of retention for a Work; empty if nothing is retained.
func heldSince(ctx SpecContext, name string) func() string {
	return func() string { return getRecord(ctx, name).Annotations[retention.Annotation] }
}

// release releases the retained objects as the administrator.
func release(ctx SpecContext) {
	GinkgoHelper()
	tellMember(ctx, clusterv1beta1.AnnotationRelease, "of-another-member,"+told.Load().IDs)
}

// tellMember sets annotations on the InternalMemberCluster for the duration of the spec.
func tellMember(ctx SpecContext, what, value string) {
	GinkgoHelper()
	object := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: memberName}}
	Expect(hubClient.Patch(ctx, object, expect.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, what, value)))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(hubClient.Patch(ctx, object, expect.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, what)))).To(Succeed())
	})
}
