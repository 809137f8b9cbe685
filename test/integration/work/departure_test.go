// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("The deletion of a Work", func() {
	It("waits for terminating objects and names the first with the cause", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "held", nil, build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(reported(ctx, "held")).Should(beDone())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":["example.com/held"]}}`))).To(Succeed())
		work := getWork(ctx, "held")
		Expect(hubClient.Delete(ctx, work)).To(Succeed())
		Eventually(func() string { return removal(ctx, "held") }).Should(And(
			ContainSubstring("1 objects still exist"), ContainSubstring("ConfigMap "+ns+"/a"), ContainSubstring("example.com/held")))
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
		Expect(getRecord(ctx, "held").DeletionTimestamp).NotTo(BeNil(), "the AppliedWork stays too")

		By("continuing after a restart of the agent")
		restartAgent()
		Consistently(expect.Gone(ctx, hubClient, work)).Should(BeFalse())
		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
	})

	It("keeps all objects without owners when the Work is abandoned", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "abandoned", nil, build.ConfigMapText(ns, "a", "x", "1"), build.DeploymentText(ns, "web", "web"))
		Eventually(reported(ctx, "abandoned")).Should(beDone())
		before := expect.ConfigMap(ctx, memberClient, ns, "a")
		updateWork(ctx, "abandoned", func(work *placementv1beta1.Work) {
			metav1.SetMetaDataAnnotation(&work.ObjectMeta, placementv1beta1.DeletePolicyAnnotation, placementv1beta1.DeletePolicyAbandon)
		})
		removeWork(ctx, "abandoned")
		Eventually(expect.Gone(ctx, memberClient, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "abandoned"}})).Should(BeTrue())
		after := expect.ConfigMap(ctx, memberClient, ns, "a")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.OwnerReferences).To(BeEmpty())
		web, err := expect.Found(ctx, memberClient, "apps/v1", "Deployment", ns, "web")
		Expect(err).NotTo(HaveOccurred())
		Expect(web.GetOwnerReferences()).To(BeEmpty())
		Consistently(expect.Data(ctx, memberClient, ns, "a")).ShouldNot(BeNil(), "the garbage collector has no reason to take it")

		By("being adopted by a re-created Work")
		createWork(ctx, "abandoned", nil, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(reported(ctx, "abandoned")).Should(beDone())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "a").UID).To(Equal(before.UID))
	})

	// The garbage collector discovers a new kind within 30 seconds.
	It("removes resources of kinds that the garbage collector has not discovered", Label("matrix"), func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "young-kind", nil, gadgets("young"))
		Eventually(reported(ctx, "young-kind")).Should(beDone())
		createWork(ctx, "young", nil, `{apiVersion: young.sorts.example.com/v1, kind: Gadget, metadata: {namespace: `+ns+`, name: a}, spec: {size: 1}}`)
		Eventually(reported(ctx, "young")).Should(Equal(outcome{Applied: "True/AllManifestsApplied", Available: "True/WorkNotTrackable"}))
		removeWork(ctx, "young")
		_, err := expect.Found(ctx, memberClient, "young.sorts.example.com/v1", "Gadget", ns, "a")
		Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		Expect(err).To(HaveOccurred(), "it is gone when its Work is gone")
	})

	It("removes nothing that has another owner", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		owner := foreignConfigMap(ctx, ns)
		createWork(ctx, "co-owner", &placementv1beta1.ApplyStrategy{AllowCoOwnership: true}, build.ConfigMapText(ns, "shared", "x", "1"), build.ConfigMapText(ns, "own", "x", "1"))
		Eventually(reported(ctx, "co-owner")).Should(beDone())
		shared := expect.ConfigMap(ctx, memberClient, ns, "shared")
		before := shared.DeepCopy()
		shared.OwnerReferences = append(shared.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID})
		Expect(memberClient.Patch(ctx, shared, client.MergeFrom(before))).To(Succeed())
		removeWork(ctx, "co-owner")
		Expect(expect.Data(ctx, memberClient, ns, "own")()).To(BeNil())
		Expect(expect.ConfigMap(ctx, memberClient, ns, "shared").OwnerReferences).To(HaveExactElements(HaveField("UID", owner.UID)))
		Consistently(expect.Data(ctx, memberClient, ns, "shared")).ShouldNot(BeNil())
	})
})

// removal returns condition Removed of a Work.
func removal(ctx SpecContext, name string) string {
	for _, c := range getWork(ctx, name).Status.Conditions {
		if c.Type == placementv1beta1.ConditionRemoved {
			return c.Message
		}
	}
	return ""
}
