// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var deploys = addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}

const hashOfDeploy = `{"addondeploymentconfigs.addon.open-cluster-management.io/default/deploy":"`

var _ = Describe("A configuration", func() {
	withDefault := func(addOn *addonv1alpha1.ClusterManagementAddOn) {
		addOn.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: deploys, DefaultConfig: &addonv1alpha1.ConfigReferent{Namespace: "default", Name: "deploy"}}}
	}

	It("is rolled out cluster by cluster, with the messages of Open Cluster Management", func(ctx SpecContext) {
		b := newBed(ctx, "a", "b")
		b.selected(ctx, "p", "a", "b")
		b.described(ctx, func(addOn *addonv1alpha1.ClusterManagementAddOn) {
			b.placed("p")(addOn)
			withDefault(addOn)
			addOn.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
				Type: clusterv1alpha1.RolloutProgressive, Progressive: &clusterv1alpha1.RolloutProgressiveConfig{MaxConcurrency: intstr.FromInt32(1)},
			}
		})
		Eventually(b.clusters).WithArguments(ctx).Should(ConsistOf("a", "b"))
		b.hashes(ctx, "one")
		Eventually(b.hash).WithArguments(ctx, "a").Should(Equal([]string{"one", ""}))
		Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Configured", "True/ConfigurationsConfigured"))
		Eventually(b.conditions).WithArguments(ctx, "b").Should(expect.HaveCondition("Configured", "False/ConfigurationsNotConfigured"))
		Eventually(b.progress).WithArguments(ctx, 0).Should(Equal("selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout."))

		By("delivering it to the first cluster")
		b.delivers(ctx, "a", hashOfDeploy+`one"}`)
		Eventually(b.hash).WithArguments(ctx, "a").Should(Equal([]string{"one", "one"}))
		Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Progressing", "False/Completed"))
		Eventually(b.hash).WithArguments(ctx, "b").Should(Equal([]string{"one", ""}))

		By("delivering it to the second one")
		b.delivers(ctx, "b", hashOfDeploy+`one"}`)
		Eventually(b.progress).WithArguments(ctx, 0).Should(Equal("selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."))
		description, err := b.description(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(description.Status.DefaultConfigReferences).To(HaveExactElements(HaveField("DesiredConfig.SpecHash", "one")))
		Expect(description.Status.InstallProgressions[0].ConfigReferences).To(HaveExactElements(And(HaveField("LastAppliedConfig.SpecHash", "one"), HaveField("LastKnownGoodConfig.SpecHash", "one"))))

		By("changing it")
		b.hashes(ctx, "two")
		Eventually(b.hash).WithArguments(ctx, "a").Should(Equal([]string{"two", "one"}))
		Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Progressing", "True/Progressing"))
		Consistently(b.hash).WithArguments(ctx, "b").Should(Equal([]string{"one", "one"}))
		b.delivers(ctx, "a", hashOfDeploy+`two"}`)
		Eventually(b.hash).WithArguments(ctx, "b").Should(Equal([]string{"two", "one"}))
	})

	It("of the cluster's add-on replaces the default one, and is refused if the add-on has no such kind", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		b.selected(ctx, "p", "a")
		b.described(ctx, func(addOn *addonv1alpha1.ClusterManagementAddOn) {
			b.placed("p")(addOn)
			withDefault(addOn)
		})
		Eventually(b.hash).WithArguments(ctx, "a").Should(Equal([]string{"", ""}))
		addOn, err := b.of(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(hubClient.Patch(ctx, addOn, expect.MergePatch(`{"spec":{"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"default","name":"own"}]}}`))).To(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Progressing", "False/ConfigurationUnsupported"))
		Eventually(func() ([]addonv1alpha1.ConfigReference, error) {
			addOn, err := b.of(ctx, "a")
			return addOn.Status.ConfigReferences, err
		}).Should(HaveExactElements(HaveField("ConfigReferent.Name", "own")))
		Eventually(func() error {
			addOn, err := b.of(ctx, "a")
			if err != nil {
				return err
			}
			addOn.Status.SupportedConfigs = []addonv1alpha1.ConfigGroupResource{deploys}
			return hubClient.Status().Update(ctx, addOn)
		}).Should(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Progressing", "False/WaitingForManifestApplied"))
	})
})
