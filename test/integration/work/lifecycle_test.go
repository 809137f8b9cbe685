// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Keeping a Work applied", func() {
	It("reverts changes and deletions on the member and restores the owner reference", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "drift", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "drift")).Should(beDone())

		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}))

		Expect(memberClient.Delete(ctx, expect.ConfigMap(ctx, memberClient, ns, "b"))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(Equal(map[string]string{"x": "1"}))

		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"ownerReferences":null}}`))).To(Succeed())
		Eventually(func() []metav1.OwnerReference { return expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences }).Should(HaveLen(1))
		Eventually(reported(ctx, "drift")).Should(beDone())
	})

	It("re-creates all objects after the AppliedWork is deleted", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "record", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "record")).Should(beDone())
		before := getRecord(ctx, "record")
		Expect(memberClient.Delete(ctx, before, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(func(g Gomega) {
			record := &placementv1beta1.AppliedWork{}
			g.Expect(memberClient.Get(ctx, client.ObjectKey{Name: "record"}, record)).To(Succeed())
			g.Expect(record.UID).NotTo(Equal(before.UID))
			object := &corev1.ConfigMap{}
			g.Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: ns, Name: "a"}, object)).To(Succeed())
			g.Expect(object.OwnerReferences).To(HaveExactElements(HaveField("UID", record.UID)))
		}).Should(Succeed())
	})

	It("removes only the objects that left the Work", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "prune", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"), build.ConfigMapText(ns, "held", "x", "1"))
		Eventually(reported(ctx, "prune")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "held"), expect.MergePatch(`{"metadata":{"finalizers":["example.com/held"]}}`))).To(Succeed())

		changeWork(ctx, "prune", build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
		Eventually(reported(ctx, "prune")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())

		By("remembering terminating objects")
		Eventually(ledger(ctx, "prune")).Should(HaveExactElements("a", "held"))
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "held"), expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(ledger(ctx, "prune")).Should(HaveExactElements("a"))
	})

	It("removes nothing while a manifest is unreadable", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "unreadable", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "unreadable")).Should(beDone())
		changeWork(ctx, "unreadable", build.ConfigMapText(ns, "a", "x", "1"),
			`{apiVersion: v1, kind: List, metadata: {name: list}, items: []}`)
		Eventually(reported(ctx, "unreadable")).Should(beRefused())
		Consistently(expect.Data(ctx, memberClient, ns, "b")).ShouldNot(BeNil())
	})
})

var _ = Describe("Objects that exist before the Work", func() {
	foreign := func(ctx SpecContext, ns string) *corev1.ConfigMap {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}, Data: map[string]string{"x": "theirs", "y": "theirs"}}
		Expect(memberClient.Create(ctx, object)).To(Succeed())
		return object
	}

	It("are taken over by default and keep fields that the manifest lacks", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreign(ctx, ns)
		createWork(ctx, "always", nil, build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reported(ctx, "always")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "ours", "y": "theirs"}))
	})

	It("stay unchanged with whenToTakeOver Never until they are deleted", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		object := foreign(ctx, ns)
		never := &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
		createWork(ctx, "never", never, build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reportedOf(ctx, "never")).Should(HaveExactElements(refused("NotTakenOver")))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion).To(Equal(object.ResourceVersion))
		Eventually(ledger(ctx, "never")).Should(BeEmpty())

		Expect(memberClient.Delete(ctx, object)).To(Succeed())
		Eventually(reported(ctx, "never")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "ours"}))
	})

	It("survive the deletion of a Work that did not take them over", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		foreign(ctx, ns)
		never := &placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
		createWork(ctx, "never-deleted", never, build.ConfigMapText(ns, "a", "x", "ours"))
		Eventually(reportedOf(ctx, "never-deleted")).Should(HaveExactElements(refused("NotTakenOver")))
		removeWork(ctx, "never-deleted")
		Consistently(expect.Data(ctx, memberClient, ns, "a")).Should(HaveKeyWithValue("x", "theirs"))
	})

	It("are refused while another Work owns them", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "owner-1", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "owner-1")).Should(beDone())
		createWork(ctx, "owner-2", nil, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reportedOf(ctx, "owner-2")).Should(HaveExactElements(refused("FailedToTakeOver")))
		Expect(message(ctx, "owner-2", 0, "Applied")).To(ContainSubstring(`"owner-1"`))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))

		By("taking it over when the first Work is deleted")
		removeWork(ctx, "owner-1")
		Eventually(reported(ctx, "owner-2")).Should(beDone())
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "2"}))
	})

	It("belong to the first Work until their author lets placements share them", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		sharing := &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
		createWork(ctx, "first", sharing, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "first")).Should(beDone())
		createWork(ctx, "second", sharing, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reportedOf(ctx, "second")).Should(HaveExactElements(refused("FailedToTakeOver")))
		Expect(message(ctx, "second", 0, "Applied")).To(And(ContainSubstring(`"first"`), ContainSubstring("fleetgate.io/shared=Placements")))
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences).To(HaveExactElements(HaveField("Name", "first")))
		Eventually(reported(ctx, "first")).Should(beDone())

		changeWork(ctx, "second", shared(build.ConfigMapText(ns, "a", "x", "1")))
		Eventually(reported(ctx, "second")).Should(beDone())

		By("continuing when the author's annotation is removed, like Works that shared before it existed")
		changeWork(ctx, "second", build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(func() map[string]string { return expect.ConfigMap(ctx, memberClient, ns, "a").Annotations }).ShouldNot(HaveKey(placementv1beta1.SharedAnnotation))
		Eventually(reported(ctx, "second")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences).To(HaveLen(2))
	})

	It("are shared if both Works allow it and stay until the last Work is deleted", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		sharing := &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}
		createWork(ctx, "shared-1", sharing, shared(build.ConfigMapText(ns, "a", "x", "1")), shared(build.ConfigMapText(ns, "b", "x", "1")))
		Eventually(reported(ctx, "shared-1")).Should(beDone())
		createWork(ctx, "shared-2", sharing, shared(build.ConfigMapText(ns, "a", "x", "1")), shared(build.ConfigMapText(ns, "b", "x", "1")))
		Eventually(reported(ctx, "shared-2")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences).To(HaveLen(2))

		By("leaving one object")
		changeWork(ctx, "shared-2", shared(build.ConfigMapText(ns, "b", "x", "1")))
		Eventually(func() []metav1.OwnerReference { return expect.ConfigMap(ctx, memberClient, ns, "a").OwnerReferences }).
			Should(HaveExactElements(HaveField("Name", "shared-1")))

		By("deleting one Work")
		removeWork(ctx, "shared-1")
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
		Eventually(func() []metav1.OwnerReference { return expect.ConfigMap(ctx, memberClient, ns, "b").OwnerReferences }).
			Should(HaveExactElements(HaveField("Name", "shared-2")))
	})
})

var _ = Describe("Deleting a Work", func() {
	It("removes the objects, then the AppliedWork, then the Work", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "deleted", nil, build.ConfigMapText(ns, "a", "x", "1"), build.DeploymentText(ns, "web", "web"))
		Eventually(reported(ctx, "deleted")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":["example.com/held"]}}`))).To(Succeed())
		work := getWork(ctx, "deleted")
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		Eventually(func() error {
			_, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
			return err
		}).Should(MatchError(ContainSubstring("not found")))
		Consistently(expect.Gone(ctx, hubClient, work)).Should(BeFalse(), "an object is still terminating on the member")

		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
		Expect(expect.Gone(ctx, memberClient, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "deleted"}})()).To(BeTrue())
	})

	It("keeps all objects while the member leaves the fleet", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "leaving", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "leaving")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		setState(ctx, clusterv1beta1.ClusterStateLeave)
		removeWork(ctx, "leaving")
		Consistently(expect.Data(ctx, memberClient, ns, "a")).ShouldNot(BeNil())
		Expect(getRecord(ctx, "leaving").DeletionTimestamp).To(BeNil())

		By("keeping it for the re-created Work when the member joins again")
		member := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: memberName}}
		Expect(hubClient.Delete(ctx, member)).To(Succeed())
		createMember(ctx)
		restartAgent()
		Consistently(expect.Data(ctx, memberClient, ns, "a")).ShouldNot(BeNil())
		createWork(ctx, "leaving", nil, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reported(ctx, "leaving")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").UID).To(Equal(before.UID))
	})

	It("releases a waiting deletion when the member leaves", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "waiting", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "waiting")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":["example.com/held"]}}`))).To(Succeed())
		work := getWork(ctx, "waiting")
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		Eventually(func() *metav1.Time { return getRecord(ctx, "waiting").DeletionTimestamp }).ShouldNot(BeNil())
		setState(ctx, clusterv1beta1.ClusterStateLeave)
		Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
		setState(ctx, clusterv1beta1.ClusterStateJoin)
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
	})
})

var _ = Describe("A restart of the agent", func() {
	It("writes nothing when nothing changed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "idle", nil, build.ConfigMapText(ns, "a", "x", "1"), build.DeploymentText(ns, "web", "web"))
		serverSide := &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
		createWork(ctx, "idle-server", serverSide, build.ConfigMapText(ns, "b", "x", "1"))
		createWork(ctx, "idle-refused", nil, build.ConfigMapText("does-not-exist", "c"))
		Eventually(reported(ctx, "idle")).Should(beDone())
		Eventually(reported(ctx, "idle-server")).Should(beDone())
		Eventually(reported(ctx, "idle-refused")).Should(beRefused())
		versions := func() []string {
			web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
			Expect(err).NotTo(HaveOccurred())
			return []string{
				getWork(ctx, "idle").ResourceVersion,
				getWork(ctx, "idle-server").ResourceVersion,
				getWork(ctx, "idle-refused").ResourceVersion,
				getRecord(ctx, "idle").ResourceVersion,
				getRecord(ctx, "idle-server").ResourceVersion,
				getRecord(ctx, "idle-refused").ResourceVersion,
				expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion,
				expect.ConfigMap(ctx, memberClient, ns, "b").ResourceVersion,
				web.GetResourceVersion(),
			}
		}
		before := versions()
		restartAgent()
		By("waiting until the new agent has corrected the last Work")
		Expect(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}})).To(Succeed())
		createWork(ctx, "newcomer", nil, build.ConfigMapText(ns, "z", "x", "1"))
		Eventually(reported(ctx, "newcomer")).Should(beDone())
		Consistently(versions).Should(Equal(before))
	})

	It("continues where the previous agent was killed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		const count = 60
		var all, half []string
		for i := range count {
			text := build.ConfigMapText(ns, fmt.Sprintf("part-%d", i), "x", "1")
			all = append(all, text)
			if i%2 == 0 {
				half = append(half, text)
			}
		}
		createWork(ctx, "parts", nil, all...)
		Eventually(expect.Data(ctx, memberClient, ns, "part-3")).ShouldNot(BeNil())
		agent.Stop()
		changeWork(ctx, "parts", half...)
		agent = startAgent(member.Config())
		Eventually(reported(ctx, "parts")).Should(beDone())
		found := &corev1.ConfigMapList{}
		Eventually(func() int {
			Expect(memberClient.List(ctx, found, client.InNamespace(ns), client.MatchingLabels{"app": "spec"})).To(Succeed())
			return len(found.Items)
		}).Should(Equal(count / 2))
		Eventually(ledger(ctx, "parts")).Should(HaveLen(count / 2))
	})

	It("retains the objects of a Work that disappeared until they are released", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "vanished", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(reported(ctx, "vanished")).Should(beDone())
		agent.Stop()
		vanish(ctx, "vanished")
		other := &placementv1beta1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: "of-another-hub"},
			Spec:       placementv1beta1.AppliedWorkSpec{WorkName: "of-another-hub", WorkNamespace: "fleet-member-elsewhere"}}
		Expect(memberClient.Create(ctx, other)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, other)).To(Succeed()) })

		agent = startAgent(member.Config())
		Eventually(heldSince(ctx, "vanished")).ShouldNot(BeEmpty())
		Eventually(holding).Should(Equal(retention.Summary{Works: 1, Objects: 1, Example: "vanished"}))
		Consistently(expect.Data(ctx, memberClient, ns, "a")).ShouldNot(BeNil())

		release(ctx)
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
		Eventually(holding).Should(Equal(retention.Summary{}))
		Eventually(expect.Gone(ctx, memberClient, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "vanished"}})).Should(BeTrue())
		Expect(getRecord(ctx, "of-another-hub").DeletionTimestamp).To(BeNil())

		By("leaving the record of another hub for a Work of the same name unchanged")
		createWork(ctx, "of-another-hub", nil, build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "of-another-hub")).Should(beRefused())
		Expect(message(ctx, "of-another-hub", 0, "Applied")).To(ContainSubstring("fleet-member-elsewhere"))
	})
})

var _ = Describe("A disconnected member", func() {
	It("gets all objects when it reconnects and is not reported as failed meanwhile", func(ctx SpecContext) {
		link, err := env.NewLink(strings.TrimPrefix(member.Config().Host, "https://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		agent.Stop()
		agent = startAgent(link.Config(member.Config()))
		DeferCleanup(restartAgent)
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "cut-off", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "cut-off")).Should(beDone())
		before := getWork(ctx, "cut-off").Status

		link.Cut()
		changeWork(ctx, "cut-off", build.ConfigMapText(ns, "a", "x", "2"))
		Consistently(func() placementv1beta1.WorkStatus { return getWork(ctx, "cut-off").Status }).Should(Equal(before))
		link.Mend()
		Eventually(reported(ctx, "cut-off")).Should(beDone())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2"}))
		Eventually(expect.Data(ctx, memberClient, ns, "b")).Should(BeNil())
	})
})

func setState(ctx SpecContext, state clusterv1beta1.ClusterState) {
	GinkgoHelper()
	object := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: memberName}}
	Expect(hubClient.Patch(ctx, object, expect.MergePatch(fmt.Sprintf(`{"spec":{"state":%q}}`, state)))).To(Succeed())
}

// shared sets the annotation with which an author lets placements share the object.
func shared(text string) string {
	return withAnnotation(text, placementv1beta1.SharedAnnotation, placementv1beta1.SharedAmongPlacements)
}
