// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("An install strategy", func() {
	It("creates the add-on for each decided cluster, and deletes it when the decision ends", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b", "c")
		b.selected(ctx, "p", "a", "b")
		description := b.described(ctx, b.placed("p", "missing"))
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		addOn, err := b.of(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(metav1.GetControllerOf(addOn)).To(HaveField("UID", description.UID))
		Expect(addOn.Annotations).To(And(HaveKeyWithValue("addon.open-cluster-management.io/values", "a"), Not(HaveKey("people"))))
		Expect(addOn.Spec.InstallNamespace).To(Equal("open-cluster-management-agent-addon"))

		By("changing the annotation of the cluster")
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(b.name("a"))}
		Expect(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"annotations":{"addon.open-cluster-management.io/values":null,"addon.open-cluster-management.io/other":"x"}}}`))).To(Succeed())
		Eventually(func() (map[string]string, error) {
			addOn, err := b.of(ctx, "a")
			return addOn.Annotations, err
		}).Should(And(HaveKeyWithValue("addon.open-cluster-management.io/other", "x"), Not(HaveKey("addon.open-cluster-management.io/values"))))

		By("removing the Placement that does not exist, and deciding otherwise")
		Expect(hubClient.Patch(ctx, description, expect.MergePatch(`{"spec":{"installStrategy":{"placements":[{"namespace":"`+b.namespace+`","name":"p"}]}}}`))).To(Succeed())
		b.selected(ctx, "p", "b", "c")
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("b", "c"))

		By("deleting one")
		addOn, err = b.of(ctx, "c")
		Expect(err).NotTo(HaveOccurred())
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		Eventually(func() (any, error) {
			again, err := b.of(ctx, "c")
			return again.UID, client.IgnoreNotFound(err)
		}).ShouldNot(Or(BeEmpty(), Equal(addOn.UID)))
	})

	It("removes nothing while its decisions are incomplete", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a", "b")
		b.described(ctx, b.placed("p"))
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		By("losing a decision that the Placement still counts")
		b.decides(ctx, "p", "a")
		Consistently(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		By("counting it no longer")
		b.counted(ctx, "p", 1)
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
	})

	It("removes nothing from an unavailable cluster, or from one that has just returned", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a", "b")
		b.described(ctx, b.placed("p"))
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		available := func(status metav1.ConditionStatus, since time.Time) {
			GinkgoHelper()
			cluster := &clusterv1.ManagedCluster{}
			Expect(hubClient.Get(ctx, client.ObjectKey{Name: b.name("b")}, cluster)).To(Succeed())
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: status, Reason: "Spec", LastTransitionTime: metav1.NewTime(since)}}
			Expect(hubClient.Status().Update(ctx, cluster)).To(Succeed())
		}
		available(metav1.ConditionUnknown, time.Now().Add(-time.Hour))
		b.selected(ctx, "p", "a")
		Consistently(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		By("returning")
		available(metav1.ConditionTrue, time.Now())
		b.selected(ctx, "p")
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("b"))
		Consistently(b.clusters).WithArguments(ctx).Should(ConsistOf("b"))
		By("having returned long ago")
		available(metav1.ConditionTrue, time.Now().Add(-time.Hour))
		b.selected(ctx, "p", "a")
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
	})

	It("creates nothing for a name that is no cluster", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		expect.Created(ctx, hubClient, build.Namespace(b.name("other")))
		b.selected(ctx, "p", "other", "a")
		b.described(ctx, b.placed("p"))
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
		Consistently(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
	})

	It("is left to the add-on's own manager until the hub manages it", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a")
		description := b.described(ctx, func(addOn *addonv1alpha1.ClusterManagementAddOn) {
			b.placed("p")(addOn)
			addOn.Annotations = map[string]string{addonv1alpha1.LifecycleAnnotation: addonv1alpha1.LifecycleSelf}
		})
		Consistently(b.clusters).WithArguments(ctx).Should(BeEmpty())
		By("the manager reporting progress itself")
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(b.name("b"), b.name("addon"))}
		expect.Created(ctx, hubClient, addOn)
		meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Installing"})
		Expect(hubClient.Status().Update(ctx, addOn)).To(Succeed())
		Consistently(b.conditions).WithArguments(ctx, "b").Should(expect.HaveCondition("Progressing", "True/Installing"))
		By("letting the hub manage it")
		Expect(hubClient.Patch(ctx, description, expect.MergePatch(`{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}}}`))).To(Succeed())
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
		By("handing it back")
		Expect(hubClient.Patch(ctx, description, expect.MergePatch(`{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"self"}}}`))).To(Succeed())
		Eventually(func() ([]string, error) {
			addOn, err := b.description(ctx)
			return addOn.Finalizers, err
		}).Should(BeEmpty())
		b.selected(ctx, "p")
		Consistently(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
	})

	It("continues after the gateway was stopped", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a")
		b.described(ctx, b.placed("p"))
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a"))
		gateway.Stop()
		b.selected(ctx, "p", "b")
		gateway = start()
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("b"))
	})
})

var _ = Describe("An add-on", func() {
	It("that somebody else created gets its owner, which managers wait for", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		description := b.described(ctx, func(*addonv1alpha1.ClusterManagementAddOn) {})
		expect.Created(ctx, hubClient, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(b.name("a"), b.name("addon"))})
		Eventually(func() (*metav1.OwnerReference, error) {
			addOn, err := b.of(ctx, "a")
			return metav1.GetControllerOf(addOn), err
		}).Should(HaveField("UID", description.UID))
		Eventually(b.conditions).WithArguments(ctx, "a").Should(And(
			expect.HaveCondition("Configured", "True/ConfigurationsConfigured"), expect.HaveCondition("Progressing", "False/WaitingForManifestApplied")))
	})

	It("is kept when its ClusterManagementAddOn is deleted and created again at once", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		b.selected(ctx, "p", "a")
		first := b.described(ctx, func(addOn *addonv1alpha1.ClusterManagementAddOn) {
			b.placed("p")(addOn)
			addOn.Finalizers = []string{addonv1alpha1.CleanupFinalizer} // Of the previous version.
		})
		owner := func() (*metav1.OwnerReference, error) {
			addOn, err := b.of(ctx, "a")
			return metav1.GetControllerOf(addOn), err
		}
		Eventually(owner).Should(HaveField("UID", first.UID))
		addOn, err := b.description(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(addOn.Finalizers).To(BeEmpty())
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		again := b.described(ctx, b.placed("p"))
		Eventually(owner).Should(HaveField("UID", again.UID))
		By("deleting it")
		Expect(hubClient.Delete(ctx, again)).To(Succeed())
		Eventually(b.clusters).WithArguments(ctx).Should(BeEmpty())
	})
})
