// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Health expressions", func() {
	const (
		current = placementv1beta1.HealthCurrentAnnotation
		failed  = placementv1beta1.HealthFailedAnnotation
	)
	available := func(status string) outcome { return outcome{Applied: "True/Applied", Available: status} }

	It("decide when a custom resource with a status of its own convention is available", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		gadget := func(expressions map[string]string) string {
			text := `{"apiVersion":"health.sorts.example.com/v1","kind":"Gadget","metadata":{"namespace":"` + ns + `","name":"a"},"spec":{"size":3}}`
			for annotation, expression := range expressions {
				text = withAnnotation(text, annotation, expression)
			}
			return text
		}
		definition := strings.Replace(gadgets("health"), "type: object, properties", "type: object, x-kubernetes-preserve-unknown-fields: true, properties", 1)
		expressions := map[string]string{current: "status.phase == 'Running' && status.ready == spec.size", failed: "status.phase == 'Broken'"}
		createWork(ctx, "health", nil, gadget(expressions), definition)
		DeferCleanup(func(ctx SpecContext) { collect(ctx, "health", "health.sorts.example.com/v1", "Gadget", ns, "a") })
		health := func(g Gomega) outcome {
			all := reportedOf(ctx, "health")(g)
			g.Expect(all).To(HaveLen(2))
			return all[0]
		}
		becomes := func(status string) {
			GinkgoHelper()
			object, err := expect.Found(ctx, memberClient, "health.sorts.example.com/v1", "Gadget", ns, "a")
			Expect(err).NotTo(HaveOccurred())
			Expect(memberClient.Patch(ctx, object, expect.MergePatch(`{"status":`+status+`}`))).To(Succeed())
		}

		Eventually(health).Should(Equal(available("False/ManifestNotAvailableYet")))
		Expect(message(ctx, "health", 0, "Available")).To(And(ContainSubstring(failed), ContainSubstring("no such key: phase")))
		Expect(reported(ctx, "health")(Default).Available).To(Equal("False/SomeManifestsAreNotAvailable"))

		becomes(`{"phase":"Running","ready":1}`)
		Eventually(func() string { return message(ctx, "health", 0, "Available") }).Should(ContainSubstring(current))
		Expect(health(Default)).To(Equal(available("False/ManifestNotAvailableYet")))
		becomes(`{"phase":"Running","ready":3}`)
		Eventually(health).Should(Equal(available("True/Available")))
		Eventually(reported(ctx, "health")).Should(beDone())
		becomes(`{"phase":"Broken"}`)
		Eventually(health).Should(Equal(available("False/Failed")))

		By("naming an invalid expression, while the manifest is applied")
		changeWork(ctx, "health", gadget(map[string]string{current: "stauts.phase == 'Running'"}), definition)
		Eventually(health).Should(Equal(available("False/HealthCheckInvalid")))
		Eventually(func() string { return availableMessage(ctx, "health") }).Should(And(
			ContainSubstring(current+" (stauts.phase == 'Running')"), ContainSubstring("undeclared reference to 'stauts'")))
	})
})

// availableMessage is the message of a Work's condition Available.
func availableMessage(ctx context.Context, name string) string {
	GinkgoHelper()
	for _, c := range getWork(ctx, name).Status.Conditions {
		if c.Type == placementv1beta1.ConditionAvailable {
			return c.Message
		}
	}
	return ""
}
