// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

var _ = Describe("A hub whose gateway was killed", Ordered, Label("matrix"), func() {
	var f *fleet.Fleet
	var admin client.Client
	BeforeAll(func(ctx SpecContext) {
		f = program.Fleet(ctx, fleet.Options{})
		admin = clientFor(f.Hub.Config())
		Eventually(place).WithArguments(ctx, admin).Should(Succeed())
		Eventually(func() error {
			return admin.Create(ctx, clusterPlacement(selecting("v1", "Nothing", "n")), client.DryRunAll)
		}).Should(beInvalid("spec.resourceSelectors[0]", "failed to get GVR of the selector"))
	})

	It("rejects changes of fleetgate's kinds, delays deletion of namespaces, and serves everything else", func(ctx SpecContext) {
		Expect(f.Gateway.Kill()).To(Succeed())
		Eventually(place).WithArguments(ctx, admin).Should(MatchError(ContainSubstring("failed calling webhook")))
		going := goingNamespace(ctx, admin)

		By("starting the gateway, the first remedy")
		Expect(f.Gateway.Start(ctx)).To(Succeed())
		Eventually(admin.Get).WithArguments(ctx, client.ObjectKeyFromObject(going), going).Should(Satisfy(apierrors.IsNotFound))
		Eventually(place).WithArguments(ctx, admin).Should(Succeed())
	})

	It("recovers when the gateway restarts, also if its namespace was deleted in between", func(ctx SpecContext) {
		Expect(f.Gateway.Kill()).To(Succeed())
		former := &corev1.Namespace{}
		key := client.ObjectKey{Name: clusterv1beta1.SystemNamespace}
		Expect(admin.Get(ctx, key, former)).To(Succeed())
		Expect(admin.Delete(ctx, former)).To(Succeed())
		Expect(f.Gateway.Start(ctx)).To(Succeed())
		Eventually(place).WithArguments(ctx, admin).Should(Succeed())
		current := &corev1.Namespace{}
		Expect(admin.Get(ctx, key, current)).To(Succeed())
		Expect(current.UID).NotTo(Equal(former.UID))
	})

	It("is released by gateway uninstall, run from anywhere, the second remedy", func(ctx SpecContext) {
		Expect(f.Gateway.Kill()).To(Succeed())
		going := goingNamespace(ctx, admin)
		kubeconfig, err := f.Hub.Kubeconfig("elsewhere", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (string, error) { return f.Run(ctx, "gateway", "", "uninstall", "--kubeconfig="+kubeconfig) }).
			Should(ContainSubstring("apiservice/v1alpha1.cluster.core.oam.dev removed"), "the Lease of the killed gateway has expired")
		Eventually(admin.Get).WithArguments(ctx, client.ObjectKeyFromObject(going), going).Should(Satisfy(apierrors.IsNotFound))
		Eventually(place).WithArguments(ctx, admin).Should(Succeed())
	})
})

func place(ctx context.Context, c client.Client) error {
	return c.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")))
}

// goingNamespace is a namespace whose deletion waits for the gateway's APIs.
func goingNamespace(ctx context.Context, c client.Client) *corev1.Namespace {
	GinkgoHelper()
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.cluster.core.oam.dev"}}
	Eventually(func(g Gomega) []apiregistrationv1.APIServiceCondition {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(api), api)).To(Succeed())
		return api.Status.Conditions
	}).Should(ContainElement(And(HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionFalse))))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "going-"}}
	Expect(c.Create(ctx, namespace)).To(Succeed())
	Expect(c.Create(ctx, leaseIn(namespace.Name))).To(Succeed())
	Expect(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "c"}})).To(Succeed())
	Expect(c.Delete(ctx, namespace)).To(Succeed())
	Eventually(func(g Gomega) []corev1.NamespaceCondition {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		return namespace.Status.Conditions
	}).Should(ContainElement(And(HaveField("Type", corev1.NamespaceDeletionDiscoveryFailure), HaveField("Status", corev1.ConditionTrue))))
	return namespace
}
