// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/conversion"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

var _ = Describe("Uninstalling", Ordered, func() {
	const namespace = "uninstalled"
	var removed []string

	uninstaller := func() *install.Uninstaller {
		removed = nil
		return &install.Uninstaller{
			Client: hubClient, Namespace: namespace, Clock: clock.RealClock{},
			Removed: func(kind, _ string) { removed = append(removed, kind) },
		}
	}
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.away.example.org"}}
	foreign := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "of-somebody-else"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.org"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}},
		}}}},
		Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
	}}

	BeforeAll(func(ctx SpecContext) {
		shipped, err := crds.All()
		Expect(err).NotTo(HaveOccurred())
		i := installer(shipped...)
		i.Hub = install.Hub{Namespace: namespace, Service: "gateway", ExternalName: "127.0.0.1", APIPort: 1, CABundle: hub.CABundle}
		i.APIs = []install.GroupVersion{{Group: "away.example.org", Version: "v1alpha1"}}
		i.Extra = append(policies.Members(policies.Parameters{TokenLifetime: time.Hour}), webhook.Configurations(webhook.Endpoint{Namespace: namespace, Service: "gateway", Port: 1, CABundle: hub.CABundle})...)
		to := webhook.Endpoint{Aggregated: true}.ClientConfig(conversion.Path)
		converted, err := conversion.Definitions(&to)
		Expect(err).NotTo(HaveOccurred())
		i.Extra = append(i.Extra, converted...)
		Expect(i.InstallBase(ctx)).To(Succeed())
		Expect(i.InstallDefinitions(ctx)).To(Succeed())
		Expect(i.InstallServing(ctx)).To(Succeed())
		// These are all kinds of shipped objects; the next gateway has nothing to change.
		counted := &countingClient{Client: hubClient}
		i.Client = counted
		Expect(i.InstallBase(ctx)).To(Succeed())
		Expect(i.InstallDefinitions(ctx)).To(Succeed())
		Expect(i.InstallServing(ctx)).To(Succeed())
		Expect(counted.applied).To(BeZero(), "writes of unchanged objects")
		create(ctx, foreign)
	})

	It("does nothing while a gateway runs, and names it", func(ctx SpecContext) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: install.LeaderLease}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("gateway-0"), LeaseDurationSeconds: ptr.To[int32](60), RenewTime: ptr.To(metav1.NewMicroTime(time.Now())),
		}}
		create(ctx, lease)
		Expect(uninstaller().Uninstall(ctx)).To(MatchError(And(ContainSubstring(namespace+"/fleetgate-gateway"), ContainSubstring("gateway-0"), ContainSubstring("stop it first"))))
		Expect(removed).To(BeEmpty())
		Expect(hubClient.Delete(ctx, lease)).To(Succeed())
	})

	It("unblocks namespaces whose deletion waits for an APIService without a gateway", func(ctx SpecContext) {
		held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "held-up"}}
		create(ctx, held)
		Eventually(func() []apiregistrationv1.APIServiceCondition { return get(ctx, api).Status.Conditions }).Should(
			ContainElement(And(HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionFalse))))
		Expect(hubClient.Delete(ctx, held)).To(Succeed())
		Eventually(func() []corev1.NamespaceCondition { return get(ctx, held).Status.Conditions }).Should(
			ContainElement(HaveField("Type", corev1.NamespaceDeletionDiscoveryFailure)))

		Expect(uninstaller().Uninstall(ctx)).To(Succeed())
		Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(held), held) }).Should(Satisfy(apierrors.IsNotFound))
	})

	It("removes webhooks and policies first, and no object of another owner", func(ctx SpecContext) {
		Expect(get(ctx, foreign).Name).To(Equal(foreign.Name))
		var first []string
		for _, kind := range removed {
			if len(first) == 0 || first[len(first)-1] != kind {
				first = append(first, kind)
			}
		}
		Expect(first).To(Equal([]string{
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService",
			"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy",
		}))
		By("finding nothing to remove the second time")
		Expect(uninstaller().Uninstall(ctx)).To(Succeed())
		Expect(removed).To(BeEmpty())
	})

	It("stops conversions, which no gateway answers", func(ctx SpecContext) {
		for _, plural := range []string{"managedclusteraddons", "clustermanagementaddons"} {
			definition := get(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".addon.open-cluster-management.io"}})
			Expect(definition.Spec.Conversion).To(Equal(&apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}))
			for _, version := range definition.Spec.Versions {
				Expect(version.Served).To(Equal(version.Name == "v1alpha1"), version.Name)
			}
		}
	})

	It("keeps CRDs and their objects", func(ctx SpecContext) {
		shipped, err := crds.All()
		Expect(err).NotTo(HaveOccurred())
		for _, crd := range shipped {
			Expect(get(ctx, crd).Name).To(Equal(crd.Name))
		}
	})
})
