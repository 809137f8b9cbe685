// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

var _ = Describe("What an administrator changed in a policy of ours", Ordered, func() {
	const name = "fleetgate-membercluster-origin"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	installing := func() *install.Installer {
		i := installer()
		i.Hub = install.Hub{Namespace: "fleet-system", Service: "gateway", APIPort: 8443, CABundle: hub.CABundle}
		i.Extra = policies.Registration()
		return i
	}
	// edited is written as kubectl edit writes.
	edited := func(ctx SpecContext, object client.Object) {
		GinkgoHelper()
		Expect(hubClient.Update(ctx, object, client.FieldOwner("kubectl-edit"))).To(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		Expect(installing().InstallServing(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(hubClient.Delete(ctx, binding)).To(Succeed())
			Expect(hubClient.Delete(ctx, policy)).To(Succeed())
		})
	})

	It("is reverted in a binding that was set to Warn, which ended the gateway", func(ctx SpecContext) {
		before := get(ctx, binding)
		warning := before.DeepCopy()
		warning.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		warning.Spec.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"strict": "yes"}}}
		edited(ctx, warning)

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, binding).Spec).To(Equal(before.Spec))
	})

	It("is put right in a policy that was given an exemption or lost a rule", func(ctx SpecContext) {
		before := get(ctx, policy)
		weaker := before.DeepCopy()
		weaker.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-me", Expression: "request.userInfo.username != 'me'"}}
		weaker.Spec.Validations = weaker.Spec.Validations[:1]
		edited(ctx, weaker)

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Spec).To(Equal(before.Spec))
	})

	It("is reverted though it was written in the name of the installer's field manager", func(ctx SpecContext) {
		before := get(ctx, policy)
		weaker := before.DeepCopy()
		weaker.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-me", Expression: "request.userInfo.username != 'me'"}}
		Expect(hubClient.Update(ctx, weaker, client.FieldOwner(install.FieldOwner))).To(Succeed())

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Spec).To(Equal(before.Spec))
	})

	It("is written once: the next look changes nothing", func(ctx SpecContext) {
		Expect(installing().InstallServing(ctx)).To(Succeed())
		before, beforeBinding := get(ctx, policy).ResourceVersion, get(ctx, binding).ResourceVersion
		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).ResourceVersion).To(Equal(before))
		Expect(get(ctx, binding).ResourceVersion).To(Equal(beforeBinding))
	})

	It("is left alone where it is no rule: labels and annotations of others", func(ctx SpecContext) {
		labelled := get(ctx, policy)
		labelled.Labels["team"] = "security"
		edited(ctx, labelled)
		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Labels).To(HaveKeyWithValue("team", "security"))
	})
})
