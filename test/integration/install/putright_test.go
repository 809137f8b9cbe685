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

var _ = Describe("An administrator's change to a policy of the installation", Ordered, func() {
	const name = "fleetgate-membercluster-origin"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	installing := func() *install.Installer {
		i := installer()
		i.Hub = install.Hub{Namespace: "fleet-system", Service: "gateway", APIPort: 8443, CABundle: hub.CABundle}
		i.Extra = policies.Registration()
		return i
	}
	// edited writes like kubectl edit.
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

	It("is reverted in a binding that was set to Warn, and does not stop the gateway", func(ctx SpecContext) {
		before := get(ctx, binding)
		warning := before.DeepCopy()
		warning.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		warning.Spec.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"strict": "yes"}}}
		edited(ctx, warning)

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, binding).Spec).To(Equal(before.Spec))
	})

	It("is reverted in a policy that got an exemption or lost a rule", func(ctx SpecContext) {
		before := get(ctx, policy)
		weaker := before.DeepCopy()
		weaker.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-me", Expression: "request.userInfo.username != 'me'"}}
		weaker.Spec.Validations = weaker.Spec.Validations[:1]
		edited(ctx, weaker)

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Spec).To(Equal(before.Spec))
	})

	It("is reverted also when the installer's field manager wrote it", func(ctx SpecContext) {
		before := get(ctx, policy)
		weaker := before.DeepCopy()
		weaker.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "not-me", Expression: "request.userInfo.username != 'me'"}}
		Expect(hubClient.Update(ctx, weaker, client.FieldOwner(install.FieldOwner))).To(Succeed())

		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Spec).To(Equal(before.Spec))
	})

	It("is reverted with one write, and the next run writes nothing", func(ctx SpecContext) {
		Expect(installing().InstallServing(ctx)).To(Succeed())
		before, beforeBinding := get(ctx, policy).ResourceVersion, get(ctx, binding).ResourceVersion
		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).ResourceVersion).To(Equal(before))
		Expect(get(ctx, binding).ResourceVersion).To(Equal(beforeBinding))
	})

	It("stays when it concerns other users' labels and annotations", func(ctx SpecContext) {
		labelled := get(ctx, policy)
		labelled.Labels["team"] = "security"
		edited(ctx, labelled)
		Expect(installing().InstallServing(ctx)).To(Succeed())
		Expect(get(ctx, policy).Labels).To(HaveKeyWithValue("team", "security"))
	})
})
