// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A changed configuration of an add-on with a template", func() {
	It("is reported once when the cluster is given it, once while it is applied, and once when it is", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, &addonv1alpha1.AddOnDeploymentConfigSpec{}, deployment)
		b.selected(ctx, "p", "edge")
		integer := func(name string) workv1.FeedbackValue {
			return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.ValueInteger, Integer: ptr.To[int64](1)}}
		}
		applied := func() {
			GinkgoHelper()
			id := workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: addonv1alpha1.DefaultInstallNamespace, Name: "agent"}
			b.applied(ctx, "edge", "-deploy-0", id, integer("ReadyReplicas"), integer("Replicas"))
			Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("Progressing", "False/Completed"))
			Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("Available", "True/ProbeAvailable"))
			Eventually(b.progress).WithArguments(ctx, 0).Should(ContainSubstring("completed with no errors"))
		}
		applied()
		reports := func() int {
			return writes.of(http.MethodPatch, "/"+b.name("edge")+"/managedclusteraddons/"+b.name("addon")+"/status")
		}
		before := reports()
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In(b.namespace, "config")}
		Expect(hubClient.Patch(ctx, config, expect.MergePatch(`{"spec":{"customizedVariables":[{"name":"LEVEL","value":"2"}]}}`))).To(Succeed())
		Eventually(b.message).WithArguments(ctx, "edge", "Progressing").Should(Equal("progressing... work is not ready"))
		Expect(b.work(ctx, "edge", "-deploy-0")).To(HaveField("Generation", BeEquivalentTo(2)))
		applied()
		Consistently(reports).Should(Equal(before + 3))
		addOn, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(addOn.Status.ConfigReferences).To(ContainElement(And(HaveField("Resource", deploys.Resource), HaveField("LastObservedGeneration", config.Generation))))
	})
})
