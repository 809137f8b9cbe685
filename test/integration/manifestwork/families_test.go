// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Works and ManifestWorks on one cluster", Ordered, func() {
	hubNamespace := clusterv1beta1.MemberNamespace(clusterName)

	BeforeAll(func(ctx SpecContext) {
		expect.Created(ctx, hubClient, build.Namespace(hubNamespace))
		give(ctx, hubNamespace, apply.HubRules(clusterName))
		Expect(hubClient.Create(ctx, &clusterv1beta1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: clusterName},
			Spec:       clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin},
		})).To(Succeed())
		insteadOfTheAgent(agentOptions{works: true})
	})

	place := func(ctx context.Context, name string, texts ...string) {
		GinkgoHelper()
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
		for _, m := range manifests(texts...) {
			work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: m.Raw}})
		}
		Expect(hubClient.Create(ctx, work)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(hubClient.Delete(ctx, work))).To(Succeed())
			Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue())
		})
	}
	placed := func(ctx context.Context, name string) func() string {
		return func() string {
			work := &placementv1beta1.Work{}
			if err := hubClient.Get(ctx, client.ObjectKey{Namespace: hubNamespace, Name: name}, work); err != nil {
				return err.Error()
			}
			c := apimeta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionApplied)
			if c == nil {
				return ""
			}
			return string(c.Status) + " " + c.Message
		}
	}

	It("are applied side by side with one name and corrected by one watch", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		place(ctx, "same-name", build.ConfigMapText(ns, "a", "x", "1"))
		createWork(ctx, "same-name", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "b", "x", "1"))
		Eventually(placed(ctx, "same-name")).Should(HavePrefix("True"))
		Eventually(conditions(ctx, "same-name")).Should(beDone())
		for _, name := range []string{"a", "b"} {
			Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, name), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
			Eventually(expect.Data(ctx, memberClient, ns, name)).Should(Equal(map[string]string{"x": "1"}))
		}
		removeWork(ctx, "same-name")
		Expect(expect.Data(ctx, memberClient, ns, "a")()).NotTo(BeNil())
		Expect(expect.Data(ctx, memberClient, ns, "b")()).To(BeNil())
	})

	It("do not contest an object: the Work yields and reports it", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		place(ctx, "same-object", build.ConfigMapText(ns, "a", "x", "work"))
		Eventually(placed(ctx, "same-object")).Should(HavePrefix("True"))
		createWork(ctx, "same-object", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "manifestwork"))
		Eventually(conditions(ctx, "same-object")).Should(beDone())
		Eventually(placed(ctx, "same-object")).Should(And(HavePrefix("False"), ContainSubstring("AppliedManifestWork"), ContainSubstring("allowCoOwnership")))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "manifestwork"}))
		settled := expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion
		Consistently(func() string { return expect.ConfigMap(ctx, memberClient, ns, "a").ResourceVersion }).Should(Equal(settled))

		By("leaving it to the Work when the ManifestWork is deleted")
		removeWork(ctx, "same-object")
		Eventually(placed(ctx, "same-object")).Should(HavePrefix("True"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "work"}))
	})
})
