// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/leak"
)

var _ = Describe("A ManagedServiceAccount", func() {
	It("gets an account, a token and a Secret, and reports them", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "plain", time.Hour)
		secret := expectToken(ctx, "plain")
		Expect(secret.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ManagedServiceAccount"), HaveField("UID", account.UID))))
		claims := claimsOf(secret)
		Expect(claims.Expires.Sub(claims.Issued)).To(Equal(time.Hour))
		Expect(statusOf(ctx, "plain").TokenSecretRef.LastRefreshTimestamp.Time).To(BeTemporally("~", claims.Issued, 10*time.Second))
	})

	altered := 0
	DescribeTable("restores the Secret when a user alters", func(ctx SpecContext, alter func(*corev1.Secret)) {
		startAgent(ctx, clock.RealClock{})
		// A unique name: the Secret of the previous entry may still exist.
		altered++
		name := fmt.Sprintf("altered-%d", altered)
		askFor(ctx, name, time.Hour)
		secret := expectToken(ctx, name)
		before := secret.ResourceVersion
		alter(secret)
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
		Expect(secret.ResourceVersion).NotTo(Equal(before))
		expectToken(ctx, name)
	},
		Entry("the token to nothing", func(s *corev1.Secret) { s.Data["token"] = nil }),
		Entry("the token to something else", func(s *corev1.Secret) { s.Data["token"] = []byte("something else") }),
		Entry("what the token says", func(s *corev1.Secret) {
			parts := strings.Split(string(s.Data["token"]), ".")
			payload, err := base64.RawURLEncoding.DecodeString(parts[1])
			Expect(err).NotTo(HaveOccurred())
			longer := regexp.MustCompile(`"exp":\d+`).ReplaceAll(payload, []byte(`"exp":9999999999`))
			s.Data["token"] = []byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString(longer) + "." + parts[2])
		}),
		Entry("the token's signature", func(s *corev1.Secret) {
			token := string(s.Data["token"])
			s.Data["token"] = []byte(token[:len(token)-40] + strings.Repeat("A", 40))
		}),
		Entry("the CA", func(s *corev1.Secret) { s.Data["ca.crt"] = hub.CABundle }),
		Entry("its keys", func(s *corev1.Secret) { s.Data["extra"] = []byte("x") }),
		Entry("its label", func(s *corev1.Secret) { s.Labels = map[string]string{} }),
		Entry("its owner", func(s *corev1.Secret) { s.OwnerReferences = nil }),
	)

	It("keeps labels of others on its Secret", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "labelled", time.Hour)
		secret := expectToken(ctx, "labelled")
		secret.Labels["argocd.argoproj.io/secret-type"] = "cluster"
		secret.Data["token"] = []byte("something else")
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
		Expect(expectToken(ctx, "labelled").Labels).To(HaveKeyWithValue("argocd.argoproj.io/secret-type", "cluster"))
	})

	It("restores a deleted Secret", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "deleted", time.Hour)
		secret := expectToken(ctx, "deleted")
		Expect(hubClient.Delete(ctx, secret.DeepCopy())).To(Succeed())
		Eventually(func() string {
			found, _ := secretOf(ctx, "deleted")
			return string(found.UID)
		}).ShouldNot(Or(BeEmpty(), BeEquivalentTo(secret.UID)))
		expectToken(ctx, "deleted")
	})

	It("gets a new account and a new token when its account is deleted on the member", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "revoked", time.Hour)
		before := claimsOf(expectToken(ctx, "revoked")).Account
		account, err := accountOf(ctx, "revoked")
		Expect(err).NotTo(HaveOccurred())
		Expect(memberClient.Delete(ctx, account)).To(Succeed())
		Eventually(func() string {
			secret, _ := secretOf(ctx, "revoked")
			return string(claimsOf(secret).Account)
		}).ShouldNot(Or(BeEmpty(), BeEquivalentTo(before)))
		expectToken(ctx, "revoked")
	})

	It("removes account and Secret when it is deleted", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "leaving", time.Hour)
		expectToken(ctx, "leaving")
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
		expectNoAccount(ctx, "leaving")
		expectNoSecret(ctx, "leaving")
	})

	It("removes only its account when it is deleted while the agent is stopped", func(ctx SpecContext) {
		agent := startAgent(ctx, clock.RealClock{})
		leaving := askFor(ctx, "leaving-unseen", time.Hour)
		askFor(ctx, "staying", time.Hour)
		expectToken(ctx, "leaving-unseen")
		stays := expectToken(ctx, "staying")
		foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: authenticationv1beta1.AccountNamespace, Name: "foreign"}}
		expect.CreatedForSpec(ctx, memberClient, foreign)

		agent.stop()
		Expect(hubClient.Delete(ctx, leaving)).To(Succeed())
		expectNoSecret(ctx, "leaving-unseen")
		_, err := accountOf(ctx, "leaving-unseen")
		Expect(err).NotTo(HaveOccurred(), "no agent is running")

		startAgent(ctx, clock.RealClock{})
		expectNoAccount(ctx, "leaving-unseen")
		Expect(expectToken(ctx, "staying").ResourceVersion).To(Equal(stays.ResourceVersion), "a restart refreshes no token")
		_, err = accountOf(ctx, "foreign")
		Expect(err).NotTo(HaveOccurred())
	})

	It("is refreshed when due by the agent's clock and not before", func(ctx SpecContext) {
		start := time.Now()
		fake := testingclock.NewFakePassiveClock(start)
		agent := startAgent(ctx, fake)
		askFor(ctx, "short", 10*time.Minute)
		first := expectToken(ctx, "short")

		By("starting again when it is due")
		result, err := agent.reconciler.Reconcile(ctx, requestFor("short"))
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(And(BeNumerically(">", 7*time.Minute+29*time.Second-time.Since(start)), BeNumerically("<=", 8*time.Minute+31*time.Second)))

		fake.SetTime(start.Add(7 * time.Minute))
		touch(ctx, "short")
		Consistently(func() string {
			secret, _ := secretOf(ctx, "short")
			return secret.ResourceVersion
		}).Should(Equal(first.ResourceVersion))

		due := start.Add(9 * time.Minute)
		fake.SetTime(due)
		touch(ctx, "short")
		Eventually(func() []byte {
			secret, _ := secretOf(ctx, "short")
			return secret.Data["token"]
		}).ShouldNot(Equal(first.Data["token"]))
		second := expectToken(ctx, "short")
		Expect(statusOf(ctx, "short").TokenSecretRef.LastRefreshTimestamp.Time).To(BeTemporally("~", due, time.Second))

		By("refreshing once although the member's clock is behind")
		Consistently(func() []byte {
			secret, _ := secretOf(ctx, "short")
			return secret.Data["token"]
		}).Should(Equal(second.Data["token"]))
		_, err = whoami(ctx, string(first.Data["token"]), member.CABundle)
		Expect(err).NotTo(HaveOccurred(), "the earlier one stays valid")
	})

	It("is refreshed at the start of an agent that was stopped too long", func(ctx SpecContext) {
		agent := startAgent(ctx, clock.RealClock{})
		askFor(ctx, "overdue", 10*time.Minute)
		first := expectToken(ctx, "overdue")
		agent.stop()
		startAgent(ctx, testingclock.NewFakePassiveClock(time.Now().Add(9*time.Minute)))
		Eventually(func() []byte {
			secret, _ := secretOf(ctx, "overdue")
			return secret.Data["token"]
		}).ShouldNot(Equal(first.Data["token"]))
		expectToken(ctx, "overdue")
	})

	It("keeps its token while a refresh fails and reports the cause", Serial, func(ctx SpecContext) {
		fake := testingclock.NewFakePassiveClock(time.Now())
		startAgent(ctx, fake)
		askFor(ctx, "stuck", 10*time.Minute)
		first := expectToken(ctx, "stuck")

		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentOnMember + "-issue"}}
		setRules(ctx, role)
		restore := func(ctx context.Context) { setRules(ctx, role, issueRule) }
		DeferCleanup(func(ctx SpecContext) { restore(ctx) })
		agentClient := expect.Client(memberConfigOfAgent(), scheme)
		Eventually(func() error { return tryIssue(ctx, agentClient) }).ShouldNot(Succeed(), "the member has noticed")
		fake.SetTime(time.Now().Add(9 * time.Minute))
		touch(ctx, "stuck")
		Eventually(func() metav1.Condition {
			return conditionOf(ctx, "stuck", authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse),
			HaveField("Reason", authenticationv1beta1.ReasonTokenReportFailed),
			HaveField("Message", And(ContainSubstring("requesting a token"), ContainSubstring("grant this right to the agent's role"))),
		))
		Expect(conditionOf(ctx, "stuck", authenticationv1beta1.ConditionSecretCreated).Status).To(Equal(metav1.ConditionTrue))
		kept, err := secretOf(ctx, "stuck")
		Expect(err).NotTo(HaveOccurred())
		Expect(kept.ResourceVersion).To(Equal(first.ResourceVersion))
		_, err = whoami(ctx, string(kept.Data["token"]), member.CABundle)
		Expect(err).NotTo(HaveOccurred())

		restore(ctx)
		Eventually(func() []byte {
			secret, _ := secretOf(ctx, "stuck")
			return secret.Data["token"]
		}).ShouldNot(Equal(first.Data["token"]), "without another change of the spec")
		expectToken(ctx, "stuck")
	})

	It("reports a validity that is too short for every API server", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "brief", 5*time.Minute)
		Eventually(func() metav1.Condition {
			return conditionOf(ctx, "brief", authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("spec.rotation.validity is 5m0s")),
		))
		Expect(conditionOf(ctx, "brief", authenticationv1beta1.ConditionSecretCreated).Status).To(Equal(metav1.ConditionFalse))
		base := account.DeepCopy()
		account.Spec.Rotation.Validity.Duration = 10 * time.Minute
		Expect(hubClient.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
		expectToken(ctx, "brief")
	})

	It("reports a validity that the member's API server rejects", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "refused", 1_200_000*time.Hour)
		Eventually(func() metav1.Condition {
			return conditionOf(ctx, "refused", authenticationv1beta1.ConditionTokenReported)
		}).Should(And(
			HaveField("Status", metav1.ConditionFalse),
			HaveField("Message", ContainSubstring("the member's API server refuses spec.rotation.validity 1200000h0m0s")),
		))
	})

	It("emits one event while it keeps failing", Serial, func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentOnMember + "-issue"}}
		setRules(ctx, role)
		DeferCleanup(func(ctx SpecContext) { setRules(ctx, role, issueRule) })
		agentClient := expect.Client(memberConfigOfAgent(), scheme)
		Eventually(func() error { return tryIssue(ctx, agentClient) }).ShouldNot(Succeed(), "the member has noticed")
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "warned", time.Hour)
		warnings := func() (notes []string) {
			var list eventsv1.EventList
			Expect(hubClient.List(ctx, &list, client.InNamespace(hubNamespace))).To(Succeed())
			for _, event := range list.Items {
				if event.Regarding.Name == "warned" && event.Series == nil {
					notes = append(notes, event.Type+": "+event.Note)
				}
			}
			return notes
		}
		Eventually(warnings).Should(ConsistOf(And(HavePrefix("Warning: "), ContainSubstring("requesting a token"))))
		for range 3 {
			// The retry fails too.
			touch(ctx, "warned")
		}
		Consistently(warnings).WithTimeout(4 * time.Second).Should(HaveLen(1))
		setRules(ctx, role, issueRule)
		expectToken(ctx, "warned")
	})

	It("gets one token without rotation and reports its expiry", func(ctx SpecContext) {
		fake := testingclock.NewFakePassiveClock(time.Now())
		startAgent(ctx, fake)
		account := askOnce(ctx, "once", 10*time.Minute)
		first := expectToken(ctx, "once")
		ends := claimsOf(first).Expires.UTC().Format(time.RFC3339)
		Expect(conditionOf(ctx, "once", authenticationv1beta1.ConditionTokenReported).Message).To(ContainSubstring("expires at " + ends + " and is not refreshed"))

		fake.SetTime(time.Now().Add(9 * time.Minute))
		touch(ctx, "once")
		Consistently(func() []byte {
			secret, _ := secretOf(ctx, "once")
			return secret.Data["token"]
		}).Should(Equal(first.Data["token"]), "80 % of its life are over")

		By("restoring the rest of the Secret")
		altered := first.DeepCopy()
		altered.Data["ca.crt"], altered.Labels = hub.CABundle, map[string]string{}
		Expect(hubClient.Update(ctx, altered)).To(Succeed())
		Expect(expectToken(ctx, "once").Data).To(Equal(first.Data))

		By("losing it")
		Expect(hubClient.Delete(ctx, first.DeepCopy())).To(Succeed())
		Eventually(func() metav1.Condition { return conditionOf(ctx, "once", authenticationv1beta1.ConditionTokenReported) }).Should(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("spec.rotation.enabled is false: set it to true"))))
		_, err := secretOf(ctx, "once")
		Expect(err).To(Satisfy(apierrors.IsNotFound))

		base := account.DeepCopy()
		account.Spec.Rotation.Enabled = ptr.To(true)
		Expect(hubClient.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
		Expect(expectToken(ctx, "once").Data["token"]).NotTo(Equal(first.Data["token"]))
	})

	It("reports the validity that the member's API server granted", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "shortened", 48*time.Hour)
		claims := claimsOf(expectToken(ctx, "shortened"))
		Expect(claims.Expires.Sub(claims.Issued)).To(Equal(longestOnMember))
		Expect(conditionOf(ctx, "shortened", authenticationv1beta1.ConditionTokenReported).Message).
			To(ContainSubstring("of spec.rotation.validity 48h0m0s the member's API server granted 2h0m0s"))
	})

	It("gets a new token when its validity is changed", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "changed", time.Hour)
		expectToken(ctx, "changed")
		base := account.DeepCopy()
		account.Spec.Rotation.Validity.Duration = 20 * time.Minute
		Expect(hubClient.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
		Eventually(func() time.Duration {
			claims := claimsOf(expectToken(ctx, "changed"))
			return claims.Expires.Sub(claims.Issued)
		}).Should(Equal(20 * time.Minute))
	})

	It("restores altered metadata of its account", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		askFor(ctx, "marked", time.Hour)
		before := expectToken(ctx, "marked")
		account, err := accountOf(ctx, "marked")
		Expect(err).NotTo(HaveOccurred())
		account.Labels = nil
		Expect(memberClient.Update(ctx, account)).To(Succeed())
		Eventually(func() map[string]string {
			account, _ := accountOf(ctx, "marked")
			return account.Labels
		}).Should(HaveKeyWithValue(authenticationv1beta1.LabelManagedServiceAccount, "true"))
		Expect(expectToken(ctx, "marked").Data).To(Equal(before.Data))
	})

	It("invalidates the tokens of a deleted one that was re-created while the agent was stopped", func(ctx SpecContext) {
		agent := startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "again", time.Hour)
		first := expectToken(ctx, "again")
		agent.stop()
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
		expectNoSecret(ctx, "again")
		askFor(ctx, "again", time.Hour)
		Expect(reviewed(ctx, string(first.Data["token"]))).To(BeTrue(), "no agent is running")
		startAgent(ctx, clock.RealClock{})
		Expect(expectToken(ctx, "again").Data["token"]).NotTo(Equal(first.Data["token"]))
		// The member caches token reviews for some seconds.
		Eventually(reviewed).WithArguments(ctx, string(first.Data["token"])).Should(BeFalse())
	})

	It("does not change the accounts of another hub's agent", func(ctx SpecContext) {
		theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: authenticationv1beta1.AccountNamespace, Name: "theirs",
			Labels:      map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
			Annotations: map[string]string{authenticationv1beta1.AnnotationMadeFor: "fleet-two/some-uid"},
		}}
		Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs.Namespace}}))).To(Succeed())
		expect.CreatedForSpec(ctx, memberClient, theirs)
		startAgent(ctx, clock.RealClock{})
		contested := askFor(ctx, "theirs", time.Hour)
		Eventually(func() string { return conditionOf(ctx, "theirs", authenticationv1beta1.ConditionTokenReported).Message }).
			Should(ContainSubstring("give each agent of a member its own --account-namespace"))
		Expect(hubClient.Delete(ctx, contested)).To(Succeed())
		Consistently(func() types.UID {
			account, _ := accountOf(ctx, "theirs")
			return account.UID
		}).Should(Equal(theirs.UID))
	})

	It("is removed once the agent has left, and those of another hub's agent stay", func(ctx SpecContext) {
		agent := startAgent(ctx, clock.RealClock{})
		for _, name := range []string{"withdrawn-1", "withdrawn-2"} {
			askFor(ctx, name, time.Hour)
			expectToken(ctx, name)
		}
		theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: authenticationv1beta1.AccountNamespace, Name: "not-withdrawn",
			Labels:      map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
			Annotations: map[string]string{authenticationv1beta1.AnnotationMadeFor: "fleet-two/some-uid"},
		}}
		nobodys := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: authenticationv1beta1.AccountNamespace, Name: "nobodys"}}
		for _, account := range []client.Object{theirs, nobodys} {
			Expect(memberClient.Create(ctx, account)).To(Succeed())
		}
		agent.stop()
		Expect(agent.reconciler.Withdraw(ctx)).To(Succeed())
		for _, name := range []string{"withdrawn-1", "withdrawn-2"} {
			expectNoAccount(ctx, name)
		}
		for _, account := range []client.Object{theirs, nobodys} {
			Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(account), account)).To(Succeed())
			Expect(memberClient.Delete(ctx, account)).To(Succeed())
		}
	})

	It("does not change an account and a Secret of others", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "taken"}, StringData: map[string]string{"a": "b"}}
		expect.CreatedForSpec(ctx, hubClient, secret)
		askFor(ctx, "taken", time.Hour)
		Eventually(func() string { return conditionOf(ctx, "taken", authenticationv1beta1.ConditionTokenReported).Message }).
			Should(ContainSubstring("Secret " + hubNamespace + "/taken is on the hub and was not made for a ManagedServiceAccount"))
		found, err := secretOf(ctx, "taken")
		Expect(err).NotTo(HaveOccurred())
		Expect(found.ResourceVersion).To(Equal(secret.ResourceVersion))

		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: authenticationv1beta1.AccountNamespace, Name: "occupied"}}
		expect.CreatedForSpec(ctx, memberClient, account)
		occupied := askFor(ctx, "occupied", time.Hour)
		Eventually(func() string {
			return conditionOf(ctx, "occupied", authenticationv1beta1.ConditionTokenReported).Message
		}).
			Should(ContainSubstring("ServiceAccount " + authenticationv1beta1.AccountNamespace + "/occupied is on the member without the label"))
		Expect(hubClient.Delete(ctx, occupied)).To(Succeed())
		Consistently(func() error {
			_, err := accountOf(ctx, "occupied")
			return err
		}).Should(Succeed())
	})

	It("reaches the same state wherever the agent is killed", func(ctx SpecContext) {
		killed := 0
		for requests := int32(1); ; requests++ {
			name := fmt.Sprintf("killed-%d", requests)
			askFor(ctx, name, time.Hour)
			reconciler, died := dyingAgent(ctx, requests)
			_, err := reconciler.Reconcile(ctx, requestFor(name))
			_ = noted(err) // the result is checked below
			if !died() {
				break
			}
			killed++
		}
		Expect(killed).To(BeNumerically(">=", 6), "account, Secret, token, its storage, status")
		startAgent(ctx, clock.RealClock{})
		for requests := 1; requests <= killed+1; requests++ {
			expectToken(ctx, fmt.Sprintf("killed-%d", requests))
		}
	})

	It("exposes no token in a log, an event, an error, a status, a metric or a cache key", func(ctx SpecContext) {
		clientset, err := kubernetes.NewForConfig(readable(hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		startCredentials(credentials.NewCredentials(clientset))
		agent := startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "secretive", time.Hour)
		askFor(ctx, authenticationv1beta1.GatewayAccount, time.Hour)
		tokens := []string{string(expectToken(ctx, "secretive").Data["token"]), string(expectToken(ctx, authenticationv1beta1.GatewayAccount).Data["token"])}

		By("starting with existing tokens")
		agent.stop()
		late := credentials.NewCredentials(clientset)
		stopLate := startCredentials(late)
		Eventually(late.Synced()).Should(BeClosed())
		agent = startAgent(ctx, clock.RealClock{})
		secret := expectToken(ctx, "secretive")
		secret.Data["token"] = []byte("something else")
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
		tokens = append(tokens, string(expectToken(ctx, "secretive").Data["token"]))
		err = expect.Client(hubConfigOfAgent(ctx), scheme).Get(ctx, client.ObjectKey{Namespace: second.namespace, Name: "secretive"}, &corev1.Secret{})
		Expect(err).To(Satisfy(apierrors.IsForbidden))
		agent.stop()
		stopLate()

		Expect(haystack["log"](ctx)).To(And(ContainSubstring("headers="), ContainSubstring("Refreshed the token")), "the log has the highest verbosity")
		Expect(haystack["error"](ctx)).To(ContainSubstring("forbidden"))
		Expect(haystack["object"](ctx)).To(ContainSubstring(`"name":"cluster-gateway"`))
		Expect(haystack["metric"](ctx)).To(ContainSubstring("controller_runtime_reconcile_total"))
		Expect(haystack["cache key"](ctx)).To(And(ContainSubstring(hubNamespace+"/secretive"), MatchRegexp(`(?m)^`+memberName+`$`)))
		for kind, text := range haystack {
			Expect(leak.Search(text(ctx), tokens...)).To(BeEmpty(), "a token is in a %s", kind)
		}
		Expect(hubClient.Delete(ctx, account)).To(Succeed())
	})
})

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: hubNamespace, Name: name}}
}

func setRules(ctx context.Context, role *rbacv1.ClusterRole, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	current := &rbacv1.ClusterRole{}
	Expect(memberClient.Get(ctx, client.ObjectKeyFromObject(role), current)).To(Succeed())
	current.Rules = rules
	Expect(memberClient.Update(ctx, current)).To(Succeed())
}
