// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/expect"
)

func identity(namespace, name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf("{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, metadata: {name: %s, namespace: %s}, spec: {type: WorkloadIdentity, clientID: c, tenantID: very-private, %s}}", name, namespace, spec))
}

var _ = Describe("Identities", func() {
	DescribeTable("can be used from the namespaces that they allow", func(ctx SpecContext, spec string, allowed bool) {
		home, tenant := expect.FreshNamespace(ctx, masters), expect.FreshNamespace(ctx, masters, "team", "a")
		expect.Created(ctx, masters, identity(home, "shared", strings.ReplaceAll(spec, "TENANT", tenant)))
		for _, user := range []*unstructured.Unstructured{azureCluster(tenant, "user"), controlPlane(tenant, "user")} {
			set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared, namespace: "+home+"}")(user)
			err := masters.Create(ctx, user, client.DryRunAll)
			if allowed {
				Expect(err).NotTo(HaveOccurred())
				continue
			}
			Expect(err).To(beInvalid("spec.identityRef", "AzureClusterIdentity shared does not allow its use from namespace "+tenant))
			Expect(err.Error()).NotTo(ContainSubstring("very-private"))
		}
	},
		Entry("no allowedNamespaces: no namespace", "", false),
		Entry("{}: every namespace", "allowedNamespaces: {}", true),
		Entry("an empty list: no namespace", "allowedNamespaces: {list: []}", false),
		Entry("a list with it", "allowedNamespaces: {list: [x, TENANT]}", true),
		Entry("a list without it", "allowedNamespaces: {list: [x]}", false),
		Entry("an empty selector: no namespace", "allowedNamespaces: {selector: {}}", false),
		Entry("a selector of its label", "allowedNamespaces: {selector: {matchLabels: {team: a}}}", true),
		Entry("a selector of another label", "allowedNamespaces: {selector: {matchLabels: {team: b}}}", false),
		Entry("a selector by expression", "allowedNamespaces: {selector: {matchExpressions: [{key: team, operator: In, values: [a, b]}]}}", true),
		Entry("a list and a selector, one of which matches", "allowedNamespaces: {list: [x], selector: {matchLabels: {team: a}}}", true),
		Entry("a list and a selector, none of which matches", "allowedNamespaces: {list: [x], selector: {matchLabels: {team: b}}}", false),
	)

	It("can be used once the namespace has the label, and cause a warning when it loses it", func(ctx SpecContext) {
		home, tenant := expect.FreshNamespace(ctx, masters), expect.FreshNamespace(ctx, masters)
		subject := identity(home, "shared", "allowedNamespaces: {selector: {matchLabels: {team: a}}}")
		expect.Created(ctx, masters, subject)
		user := azureCluster(tenant, "user")
		set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared, namespace: "+home+"}")(user)
		Expect(masters.Create(ctx, user, client.DryRunAll)).To(beInvalid("spec.identityRef", "does not allow"))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}
		Expect(masters.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"a"}}}`)))).To(Succeed())
		Eventually(func() error { return masters.Create(ctx, user.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		expect.Created(ctx, masters, user)
		listener, heard := listening()
		Expect(change(ctx, listener, subject, set("spec.allowedNamespaces", "{list: [x]}"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("AzureClusters of a namespace that is not allowed any more")))
	})

	It("cannot be deleted while a cluster uses them, unless they have no finalizer or their namespace is being deleted", func(ctx SpecContext) {
		home, tenant := expect.FreshNamespace(ctx, masters), expect.FreshNamespace(ctx, masters)
		subject := identity(home, "shared", "allowedNamespaces: {}")
		expect.Created(ctx, masters, subject)
		for _, user := range []*unstructured.Unstructured{azureCluster(tenant, "user"), controlPlane(tenant, "user")} {
			set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared, namespace: "+home+"}")(user)
			expect.Created(ctx, masters, user)
			Expect(masters.Delete(ctx, subject, client.DryRunAll)).To(beInvalid("metadata.name", "use this identity"), user.GetKind())
			Expect(masters.Delete(ctx, user)).To(Succeed())
		}
		local := azureCluster(tenant, "local")
		set("spec.identityRef", "{kind: AzureClusterIdentity, name: shared}")(local)
		expect.Created(ctx, masters, local)
		Expect(masters.Delete(ctx, subject, client.DryRunAll)).To(Succeed(), "an identity of its own namespace")

		kept := identity(tenant, "shared", "allowedNamespaces: {}")
		kept.SetFinalizers([]string{"azurecluster.infrastructure.cluster.x-k8s.io/0123"})
		expect.Created(ctx, masters, kept)
		Expect(masters.Delete(ctx, kept, client.DryRunAll)).To(Succeed())
		Expect(change(ctx, masters, kept, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })).To(Succeed())
		Expect(masters.Delete(ctx, kept, client.DryRunAll)).To(beInvalid("metadata.name", "use this identity"))
		Expect(masters.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})).To(Succeed())
		Eventually(func() error {
			return masters.Get(ctx, client.ObjectKey{Name: tenant}, &corev1.Namespace{})
		}).Should(Satisfy(apierrors.IsNotFound))
	})

	It("cannot change their type, which determines their fields", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, masters)
		subject := identity(namespace, "i", "allowedNamespaces: {}")
		expect.Created(ctx, masters, subject)
		Expect(change(ctx, masters, subject, set("spec.type", "UserAssignedMSI"))).To(beInvalid("spec.type", "field is immutable"))
		Expect(change(ctx, masters, subject, set("spec.resourceID", "x"))).To(beInvalid("spec.resourceID", "only be set when the type is UserAssignedMSI"))
		Expect(masters.Create(ctx, identity(namespace, "j", "userAssignedIdentityCredentialsPath: p"))).To(beInvalid("spec.userAssignedIdentityCredentialsPath", "UserAssignedIdentityCredential"))
	})

	It("cause a warning when their Secret or its key is missing", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, masters)
		listener, heard := listening()
		principal := func(name string) *unstructured.Unstructured {
			object := identity(namespace, name, "clientSecret: {name: credential, namespace: "+namespace+"}")
			set("spec.type", "ServicePrincipal")(object)
			return object
		}
		Expect(listener.Create(ctx, principal("a"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("Secret " + namespace + "/credential is not found")))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credential"}, Data: map[string][]byte{"other": []byte("x")}}
		expect.Created(ctx, masters, secret)
		Expect(listener.Create(ctx, principal("b"))).To(Succeed())
		Expect(heard.take()).To(ContainElement(ContainSubstring("the Secret has no key clientSecret")))
		secret.Data["clientSecret"] = []byte("s")
		Expect(masters.Update(ctx, secret)).To(Succeed())
		Expect(listener.Create(ctx, principal("c"))).To(Succeed())
		Expect(heard.take()).To(BeEmpty())
		Expect(listener.Create(ctx, identity(namespace, "d", "allowedNamespaces: {}"))).To(Succeed())
		Expect(heard.take()).To(BeEmpty())
	})
})
