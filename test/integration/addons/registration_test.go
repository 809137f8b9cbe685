// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var (
	byCertificate = Equal([]string{"agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"})
	byToken       = Equal([]string{"agent-name", "cluster-name", "kubeconfig", "token"})
)

var _ = Describe("The agent of an add-on on a member", func() {
	It("gets a certificate that its manager approved, renewed in place and removed with the add-on", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m := b.joined(ctx, "edge")
		kubeconfig := b.name("addon") + "-hub-kubeconfig"
		newManager(b.name("addon"), m.addOns, hubSigner).run()
		m.start(addonv1alpha1.DriverCSR)
		addOn := b.install(ctx, "edge")
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(byCertificate)
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("ClusterCertificateRotated", "True/ClientCertificateUpdated"))
		first, err := m.secret(ctx, kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Data).To(And(HaveKeyWithValue("cluster-name", []byte(m.name)), HaveKeyWithValue("agent-name", []byte("fleetgate"))))
		live, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(live.Status.KubeClientDriver).To(Equal(addonv1alpha1.DriverCSR))

		By("using it on this cluster, and on no other one")
		own := m.as(ctx, kubeconfig)
		Eventually(mayRead(own, m.name)).WithArguments(ctx).Should(Succeed())
		Expect(mayRead(own, b.name("edge-1"))(ctx)).To(Satisfy(apierrors.IsForbidden))
		Expect(own.List(ctx, &corev1.SecretList{}, client.InNamespace(m.name))).To(Satisfy(apierrors.IsForbidden))
		Expect(own.Create(ctx, requestFor(b.name("edge-1"), b.name("addon"), b.name("edge-1")))).To(Satisfy(apierrors.IsForbidden))

		By("renewing it")
		m.clock.SetTime(time.Now().Add(20 * time.Hour))
		Eventually(m.secret).WithArguments(ctx, kubeconfig).Should(And(HaveField("UID", first.UID), HaveField("Data", Not(HaveKeyWithValue("tls.crt", first.Data["tls.crt"])))))
		m.clock.SetTime(time.Now())

		By("deleting its Secret")
		Expect(hubClient.Delete(ctx, first)).To(Succeed())
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(byCertificate)

		By("deleting the add-on")
		Expect(m.recorded(ctx)).To(Equal([]string{addOn.Name}))
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(BeEmpty())
		Eventually(m.recorded).WithArguments(ctx).Should(BeEmpty())
	})

	It("gets a token of its account, and a certificate when the driver changes", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m := b.joined(ctx, "edge")
		kubeconfig := b.name("addon") + "-hub-kubeconfig"
		newManager(b.name("addon"), m.addOns, hubSigner).run()
		m.start(addonv1alpha1.DriverToken)
		b.install(ctx, "edge")
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(byToken)
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(And(
			expect.HaveCondition("TokenInfrastructureReady", "True/TokenInfrastructureReady"), expect.HaveCondition("TokenRefreshed", "True/AddonTokenRefreshed")))
		account, err := b.account(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		conditions, err := b.conditions(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(expect.Condition(conditions, "TokenInfrastructureReady").Message).To(Equal("ServiceAccount " + m.name + "/" + account.Name + " (UID: " + string(account.UID) + ") is ready"))
		own := m.as(ctx, kubeconfig)
		Eventually(mayRead(own, m.name)).WithArguments(ctx).Should(Succeed())
		Expect(mayRead(own, b.name("edge-1"))(ctx)).To(Satisfy(apierrors.IsForbidden))

		By("renewing it")
		before, err := m.secret(ctx, kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		m.clock.SetTime(time.Now().Add(20 * time.Hour))
		Eventually(m.secret).WithArguments(ctx, kubeconfig).Should(And(HaveField("UID", before.UID), HaveField("Data", Not(HaveKeyWithValue("token", before.Data["token"])))))
		m.clock.SetTime(time.Now())

		By("losing the account, and changes of its Role")
		before, err = m.secret(ctx, kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		role := &rbacv1.Role{ObjectMeta: build.In(m.name, b.name("addon")+"-token-role")}
		Expect(hubClient.Patch(ctx, role, expect.MergePatch(`{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`))).To(Succeed())
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
		Eventually(m.secret).WithArguments(ctx, kubeconfig).Should(HaveField("Data", Not(HaveKeyWithValue("token", before.Data["token"]))))
		Eventually(func() error { return mayRead(m.as(ctx, kubeconfig), m.name)(ctx) }).Should(Succeed())
		Eventually(func() ([]rbacv1.PolicyRule, error) {
			return role.Rules, hubClient.Get(ctx, client.ObjectKeyFromObject(role), role)
		}).Should(HaveExactElements(HaveField("Resources", []string{"serviceaccounts/token"})))
		own = m.as(ctx, kubeconfig)

		By("changing the driver")
		m.agent.Stop()
		m.start(addonv1alpha1.DriverCSR)
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(byCertificate)
		Eventually(b.account).WithArguments(ctx, "edge").Should(BeNil())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("TokenInfrastructureReady", ""))
		Eventually(mayRead(own, m.name)).WithArguments(ctx).Should(Satisfy(apierrors.IsUnauthorized))
		Eventually(func() error { return mayRead(m.as(ctx, kubeconfig), m.name)(ctx) }).Should(Succeed())
	})

	It("gets a certificate of another signer", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		own := newManager(b.name("addon"), m.addOns, otherSigner)
		own.run()
		m.start(addonv1alpha1.DriverToken)
		b.install(ctx, "edge")
		secret := b.name("addon") + "-example.com-addons-client-cert"
		Eventually(m.keys).WithArguments(ctx, secret).Should(Equal([]string{"agent-name", "cluster-name", "tls.crt", "tls.key"}))
		kept, err := m.secret(ctx, secret)
		Expect(err).NotTo(HaveOccurred())
		block, _ := pem.Decode(kept.Data["tls.crt"])
		got, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.CheckSignatureFrom(own.certificate)).To(Succeed())
		Expect(got.Subject.CommonName).To(Equal(groupOf(m.name, b.name("addon")) + ":agent:" + b.name("addon")))
		live, err := b.of(ctx, "edge")
		Expect(err).NotTo(HaveOccurred())
		Expect(live.Status.KubeClientDriver).To(BeEmpty())
	})

	It("loses its credential when the add-on was deleted while fleetgate's agent was stopped", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		kubeconfig := b.name("addon") + "-hub-kubeconfig"
		newManager(b.name("addon"), m.addOns, hubSigner).run()
		m.start(addonv1alpha1.DriverToken)
		addOn := b.install(ctx, "edge")
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(byToken)
		m.agent.Stop()
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		Eventually(b.account).WithArguments(ctx, "edge").Should(BeNil())
		Consistently(m.keys).WithArguments(ctx, kubeconfig).Should(byToken)
		m.start(addonv1alpha1.DriverToken)
		Eventually(m.keys).WithArguments(ctx, kubeconfig).Should(BeEmpty())
	})

	It("gets no more than ten requests while nobody approves them", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		for range 10 {
			_, err := m.requests().Create(ctx, requestFor(m.name, b.name("addon"), m.name), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		m.start(addonv1alpha1.DriverCSR)
		addOn := b.install(ctx, "edge")
		Expect(newManager(b.name("addon"), m.addOns, hubSigner).register(ctx, addOn)).To(Succeed())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("ClusterCertificateRotated", "False/ClientCertificateUpdateFailed"))
		Consistently(requestsOf).WithArguments(ctx, b.name("addon")).Should(HaveLen(10))
	})

	It("gets nothing into Secrets of others, and nothing into the agent's namespace", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		kubeconfig := b.name("addon") + "-hub-kubeconfig"
		foreign := &corev1.Secret{ObjectMeta: build.In(m.addOns, kubeconfig), StringData: map[string]string{"kubeconfig": "somebody's"}}
		expect.Created(ctx, hubClient, foreign)
		m.start(addonv1alpha1.DriverToken)
		addOn := b.install(ctx, "edge")
		own := newManager(b.name("addon"), m.addOns, hubSigner)
		Expect(own.register(ctx, addOn)).To(Succeed())
		refused := func(part string) {
			GinkgoHelper()
			Eventually(func() (string, error) {
				conditions, err := b.conditions(ctx, "edge")
				return expect.Condition(conditions, "TokenRefreshed").Message, err
			}).Should(ContainSubstring(part))
		}
		refused("is not this agent's")
		Consistently(m.secret).WithArguments(ctx, kubeconfig).Should(HaveField("ResourceVersion", foreign.ResourceVersion))

		By("naming the agent's own namespace")
		own.namespace = m.namespace
		Eventually(func() error {
			live, err := b.of(ctx, "edge")
			if err != nil {
				return err
			}
			return own.register(ctx, live)
		}).Should(Succeed())
		refused("is reserved")
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: kubeconfig}, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound))
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		Consistently(m.secret).WithArguments(ctx, kubeconfig).Should(HaveField("ResourceVersion", foreign.ResourceVersion))
	})
})

var _ = Describe("The account of an add-on", func() {
	// wantsToken registers the add-on of a cluster for a token, like the manager and the agent.
	wantsToken := func(ctx context.Context, b *bed, cluster string) {
		GinkgoHelper()
		addOn := b.install(ctx, cluster)
		addOn.Status.KubeClientDriver = addonv1alpha1.DriverToken
		addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: hubSigner}}
		Expect(hubClient.Status().Update(ctx, addOn)).To(Succeed())
	}

	It("exists only while the cluster is accepted", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := b.joined(ctx, "edge")
		m.accepted(ctx, metav1.ConditionFalse)
		wantsToken(ctx, b, "edge")
		Consistently(b.account).WithArguments(ctx, "edge").Should(BeNil())
		m.accepted(ctx, metav1.ConditionTrue)
		Eventually(b.account).WithArguments(ctx, "edge").ShouldNot(BeNil())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("TokenInfrastructureReady", "True/TokenInfrastructureReady"))
		m.accepted(ctx, metav1.ConditionFalse)
		Eventually(b.account).WithArguments(ctx, "edge").Should(BeNil())
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("TokenInfrastructureReady", ""))
	})

	It("is for the groups of a cluster's klusterlets, unless the cluster is a member", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		m := &member{name: b.name("edge")}
		Expect(hubClient.Patch(ctx, build.Namespace(m.name), expect.MergePatch(`{"metadata":{"labels":{"open-cluster-management.io/cluster-name":"`+m.name+`"}}}`))).To(Succeed())
		m.accepted(ctx, metav1.ConditionTrue)
		wantsToken(ctx, b, "edge")
		binding := &rbacv1.RoleBinding{ObjectMeta: build.In(m.name, b.name("addon")+"-token-role")}
		Eventually(func() error { return hubClient.Get(ctx, client.ObjectKeyFromObject(binding), binding) }).Should(Succeed())
		Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "system:open-cluster-management:"+m.name), HaveField("Name", "open-cluster-management:"+m.name)))
	})

	It("is not an account that somebody else created", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		b.joined(ctx, "edge")
		foreign := &corev1.ServiceAccount{ObjectMeta: build.In(b.name("edge"), b.name("addon")+"-agent")}
		expect.Created(ctx, hubClient, foreign)
		wantsToken(ctx, b, "edge")
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(expect.HaveCondition("TokenInfrastructureReady", "False/TokenInfrastructureApplyFailed"))
		Consistently(func() error {
			return hubClient.Get(ctx, client.ObjectKey{Namespace: b.name("edge"), Name: b.name("addon") + "-token-role"}, &rbacv1.RoleBinding{})
		}).Should(Satisfy(apierrors.IsNotFound))
		Expect(b.account(ctx, "edge")).To(HaveField("UID", foreign.UID))
	})

	It("gives tokens to the agent of its own cluster only", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m, thief := b.joined(ctx, "edge"), b.joined(ctx, "edge-1")
		wantsToken(ctx, b, "edge")
		var account *corev1.ServiceAccount
		Eventually(func() (*corev1.ServiceAccount, error) {
			var err error
			account, err = b.account(ctx, "edge")
			return account, err
		}).ShouldNot(BeNil())
		own := clientOf(accountUser(m.name))
		Eventually(func() error { return own.SubResource("token").Create(ctx, account, tokenRequest()) }).Should(Succeed())
		Expect(clientOf(accountUser(thief.name)).SubResource("token").Create(ctx, account, tokenRequest())).To(Satisfy(apierrors.IsForbidden))

		By("getting a right to more")
		role, binding := build.Grant(m.name, "more", accountUser(thief.name), []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}}})
		expect.Created(ctx, hubClient, role, binding)
		Eventually(func() error {
			return clientOf(accountUser(thief.name)).SubResource("token").Create(ctx, account, tokenRequest())
		}).Should(MatchError(ContainSubstring("writes in the namespace of that member only")))
	})
})

var _ = Describe("An agent that requests a certificate for an add-on of another cluster", func() {
	It("cannot use the other cluster's label, and gets no approval with its own", func(ctx SpecContext) {
		b := newBed(ctx, "edge", "edge-1")
		m, thief := b.joined(ctx, "edge"), b.joined(ctx, "edge-1")
		newManager(b.name("addon"), m.addOns, hubSigner).run()
		b.install(ctx, "edge")
		b.install(ctx, "edge-1")
		_, err := thief.requests().Create(ctx, requestFor(m.name, b.name("addon"), m.name), metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("of its own cluster")))
		lasting := requestFor(thief.name, b.name("addon"), thief.name)
		lasting.Spec.ExpirationSeconds = nil
		_, err = thief.requests().Create(ctx, lasting, metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("for at most 30 days")))
		stolen, err := thief.requests().Create(ctx, requestFor(m.name, b.name("addon"), thief.name), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		regular, err := thief.requests().Create(ctx, requestFor(thief.name, b.name("addon"), thief.name), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		decisions := func(name string) func(context.Context) ([]certificatesv1.CertificateSigningRequestCondition, error) {
			return func(ctx context.Context) ([]certificatesv1.CertificateSigningRequestCondition, error) {
				csr, err := thief.requests().Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				return csr.Status.Conditions, nil
			}
		}
		Eventually(decisions(regular.Name)).WithArguments(ctx).Should(HaveLen(1))
		Consistently(decisions(stolen.Name)).WithArguments(ctx).Should(BeEmpty())
		Expect(strings.HasPrefix(stolen.Name, "addon")).To(BeTrue())
	})
})
