// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
)

func isNotFound(err error) bool { return apierrors.IsNotFound(err) }

var _ = Describe("A member's identity", func() {
	var member client.Client

	BeforeEach(func(ctx SpecContext) { member = newMemberIdentity(ctx) })

	refusedToken := func(ctx context.Context, account string, lifetime time.Duration, boundTo, text string) {
		GinkgoHelper()
		Expect(requestToken(ctx, member, account, lifetime, boundTo)).To(MatchError(And(
			ContainSubstring("fleetgate-member-token-requests"), ContainSubstring(text))))
	}

	It("renews its token, which must be bound to a Secret and short-lived", func(ctx SpecContext) {
		Expect(requestToken(ctx, member, clusterv1beta1.AgentAccount, tokenLifetime, clusterv1beta1.AgentCredentialSecret)).To(Succeed())
		refusedToken(ctx, clusterv1beta1.AgentAccount, tokenLifetime, "", "is bound to Secret")
		refusedToken(ctx, clusterv1beta1.AgentAccount, tokenLifetime, "unbound", "is bound to Secret")
		refusedToken(ctx, clusterv1beta1.AgentAccount, tokenLifetime+time.Second, clusterv1beta1.AgentCredentialSecret, "lives at most 168h0m0s")
		Expect(requestToken(ctx, member, "other", tokenLifetime, clusterv1beta1.AgentCredentialSecret)).To(Satisfy(apierrors.IsForbidden))
	})

	It("gets no token of another account, even with additional RBAC rights", func(ctx SpecContext) {
		grant(ctx, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}})
		Eventually(func() error {
			return requestToken(ctx, member, "other", tokenLifetime, clusterv1beta1.AgentCredentialSecret)
		}).Should(MatchError(ContainSubstring(`requests tokens of its account "agent" only`)))
	})

	DescribeTable("cannot write other Secrets than those of ManagedServiceAccounts", func(ctx SpecContext, text string, alter func(*corev1.Secret)) {
		Expect(member.Create(ctx, tokenSecret(alter))).To(MatchError(And(ContainSubstring("fleetgate-member-secrets"), ContainSubstring(text))))

		By("updating a valid Secret")
		secret := tokenSecret()
		Expect(member.Create(ctx, secret)).To(Succeed())
		Expect(change(ctx, member, secret, alter)).NotTo(Succeed())
	},
		Entry("a token Secret that the hub fills in", "type Opaque only", func(s *corev1.Secret) {
			s.Type = corev1.SecretTypeServiceAccountToken
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: clusterv1beta1.AgentAccount}
		}),
		Entry("a Secret without the label", "ManagedServiceAccounts only", func(s *corev1.Secret) { s.Labels = nil }),
		Entry("a Secret with the label's other value", "ManagedServiceAccounts only", func(s *corev1.Secret) {
			s.Labels[authenticationv1beta1.LabelManagedServiceAccount] = "false"
		}),
		Entry("another key", "exactly the keys", func(s *corev1.Secret) { s.Data["extra"] = nil }),
		Entry("a missing key", "exactly the keys", func(s *corev1.Secret) { delete(s.Data, "token") }),
		Entry("no keys", "exactly the keys", func(s *corev1.Secret) { s.Data = nil }),
		Entry("data above the limit", "at most 65536 bytes", func(s *corev1.Secret) {
			s.Data["token"] = bytes.Repeat([]byte("t"), authenticationv1beta1.MaxSecretBytes+3)
		}),
		Entry("an annotation that the hub's controllers read", "no kubernetes.io/service-account annotation", func(s *corev1.Secret) {
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: clusterv1beta1.AgentAccount}
		}),
	)

	It("writes a Secret of a ManagedServiceAccount, up to the limit", func(ctx SpecContext) {
		secret := tokenSecret(func(s *corev1.Secret) {
			s.Data["ca.crt"] = bytes.Repeat([]byte("c"), 1000)
			s.Data["token"] = bytes.Repeat([]byte("t"), authenticationv1beta1.MaxSecretBytes-1000)
		})
		Expect(member.Create(ctx, secret)).To(Succeed())
		Expect(change(ctx, member, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("next") })).To(Succeed())
	})

	It("cannot change the hub's own Secrets", func(ctx SpecContext) {
		credential := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: clusterv1beta1.AgentCredentialSecret}}
		Expect(change(ctx, member, credential, func(s *corev1.Secret) { s.Data = map[string][]byte{"a": nil} })).
			To(MatchError(ContainSubstring("fleetgate-member-secrets")))
	})

	It("is bounded by the name of its namespace, not by a label", func(ctx SpecContext) {
		var namespace corev1.Namespace
		Expect(masters.Get(ctx, client.ObjectKey{Name: memberNamespace}, &namespace)).To(Succeed())
		Expect(namespace.Labels).NotTo(HaveKey(clusterv1beta1.LabelFleetResource))
		Expect(member.Create(ctx, tokenSecret(func(s *corev1.Secret) { s.Labels = nil }))).
			To(MatchError(ContainSubstring("fleetgate-member-secrets")))
	})

	It("is bounded while the gateway is down", Serial, func(ctx SpecContext) {
		gateway.stop()
		DeferCleanup(func() { gateway.start() })
		refusedToken(ctx, clusterv1beta1.AgentAccount, tokenLifetime, "", "is bound to Secret")
		Expect(member.Create(ctx, tokenSecret(func(s *corev1.Secret) { s.Labels = nil }))).
			To(MatchError(ContainSubstring("fleetgate-member-secrets")))
		Expect(member.Create(ctx, tokenSecret())).To(Succeed())
		Expect(requestToken(ctx, member, clusterv1beta1.AgentAccount, tokenLifetime, clusterv1beta1.AgentCredentialSecret)).To(Succeed())
	})
})

var _ = Describe("The exemption from policies on members' namespaces", func() {
	It("applies to the gateway with the role of its installation", func(ctx SpecContext) {
		Expect(requestToken(ctx, gateway.client, clusterv1beta1.AgentAccount, 2*tokenLifetime, "")).To(Succeed())
		Expect(gateway.client.Create(ctx, tokenSecret(func(s *corev1.Secret) { s.Labels, s.Data = nil, nil }))).To(Succeed())
	})

	It("applies to a user with the verb bypass only", func(ctx SpecContext) {
		config, err := hub.ConfigFor("operator")
		Expect(err).NotTo(HaveOccurred())
		operator := clientFor(config)
		bindClusterRole(ctx, "write-secrets", "operator", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})
		write := func() error { return operator.Create(ctx, tokenSecret(func(s *corev1.Secret) { s.Labels = nil })) }
		Eventually(write).Should(MatchError(ContainSubstring("fleetgate-member-secrets")))

		bindClusterRole(ctx, "bypass", "operator", rbacv1.PolicyRule{
			APIGroups: []string{webhook.BypassGroup}, Resources: []string{webhook.BypassResource}, Verbs: []string{webhook.BypassVerb},
		})
		Eventually(write).Should(Succeed())
	})

	It("applies to the garbage collector", func(ctx SpecContext) {
		config, err := hub.ConfigFor("collector")
		Expect(err).NotTo(HaveOccurred())
		collector := clientFor(config)
		bindClusterRole(ctx, "collect", "collector", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"update"}})
		secret := tokenSecret(func(s *corev1.Secret) { s.Labels, s.Finalizers = nil, []string{"example.org/wait"} })
		Expect(masters.Create(ctx, secret)).To(Succeed())
		Eventually(func() error {
			return change(ctx, collector, secret, func(s *corev1.Secret) { s.Finalizers = nil })
		}).Should(Succeed())
		Expect(change(ctx, collector, secret, func(s *corev1.Secret) { s.Data["token"] = []byte("x") })).
			To(MatchError(ContainSubstring("fleetgate-member-secrets")))
	})
})

var _ = Describe("Outside members' namespaces", func() {
	It("Secrets are not restricted", func(ctx SpecContext) {
		config, err := hub.ConfigFor("developer")
		Expect(err).NotTo(HaveOccurred())
		bindClusterRole(ctx, "develop", "developer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}})
		Eventually(func() error {
			return clientFor(config).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "any-"}})
		}).Should(Succeed())
	})
})

// grant adds a rule to the member's Role until the spec ends.
func grant(ctx context.Context, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: "agent"}}
	var before []rbacv1.PolicyRule
	Expect(change(ctx, masters, role, func(r *rbacv1.Role) {
		before = r.Rules
		r.Rules = append(r.Rules[:len(before):len(before)], rule)
	})).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(change(ctx, masters, role, func(r *rbacv1.Role) { r.Rules = before })).To(Succeed())
	})
}

// bindClusterRole grants a user one cluster-wide rule until the spec ends.
func bindClusterRole(ctx context.Context, name, user string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	}
	for _, object := range objects {
		Expect(masters.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(masters.Delete(ctx, object))).To(Succeed()) })
	}
}
