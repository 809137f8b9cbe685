// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Two members of one hub", func() {
	It("have accounts of the same name with nothing in common", func(ctx SpecContext) {
		clientset, err := kubernetes.NewForConfig(readable(hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		current := credentials.NewCredentials(clientset)
		startCredentials(current)
		tokens := map[*place]string{}
		for _, p := range []*place{first, second} {
			p.startAgent(ctx, p.hubConfigOfAgent(ctx), clock.RealClock{})
			p.askFor(ctx, authenticationv1beta1.GatewayAccount, time.Hour)
		}
		for _, p := range []*place{first, second} {
			tokens[p] = string(p.expectToken(ctx, authenticationv1beta1.GatewayAccount).Data["token"])
			Expect(p.reviewed(ctx, tokens[p])).To(BeTrue())
			Eventually(func() (credentials.Credential, error) { return current.Credential(p.name) }).
				Should(Equal(credentials.Credential{Token: tokens[p], CA: p.cluster.CABundle}))
		}
		Expect(first.reviewed(ctx, tokens[second])).To(BeFalse())
		Expect(second.reviewed(ctx, tokens[first])).To(BeFalse())

		By("losing one of them")
		Expect(hubClient.Delete(ctx, &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: second.namespace, Name: authenticationv1beta1.GatewayAccount,
		}})).To(Succeed())
		second.expectNoAccount(ctx, authenticationv1beta1.GatewayAccount)
		// The member caches token reviews for some seconds.
		Eventually(second.reviewed).WithArguments(ctx, tokens[second]).Should(BeFalse())
		Expect(first.reviewed(ctx, tokens[first])).To(BeTrue())
		Expect(current.Credential(first.name)).To(HaveField("Token", tokens[first]))
	})

	It("cannot access objects of each other", func(ctx SpecContext) {
		first.startAgent(ctx, first.hubConfigOfAgent(ctx), clock.RealClock{})
		account := first.askFor(ctx, "of-the-first", time.Hour)
		secret := first.expectToken(ctx, account.Name)
		asSecond := expect.Client(second.hubConfigOfAgent(ctx), scheme)
		altered := secret.DeepCopy()
		altered.Data["token"] = []byte("something else")
		status := account.DeepCopy()
		status.Status.TokenSecretRef = nil
		for what, err := range map[string]error{
			"reads the Secret":       asSecond.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}),
			"lists Secrets":          asSecond.List(ctx, &corev1.SecretList{}, client.InNamespace(first.namespace)),
			"writes the Secret":      asSecond.Update(ctx, altered),
			"makes a Secret":         asSecond.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: first.namespace, Name: "another"}}),
			"deletes the Secret":     asSecond.Delete(ctx, secret.DeepCopy()),
			"reads what is asked":    asSecond.Get(ctx, client.ObjectKeyFromObject(account), &authenticationv1beta1.ManagedServiceAccount{}),
			"writes the status":      asSecond.Status().Patch(ctx, status, client.MergeFrom(account)),
			"deletes what is asked":  asSecond.Delete(ctx, account.DeepCopy()),
			"deletes its own Secret": asSecond.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: second.namespace, Name: "own"}}),
		} {
			Expect(err).To(Satisfy(apierrors.IsForbidden), "the agent of the second member %s", what)
		}
		Expect(first.secretOf(ctx, account.Name)).To(HaveField("Data", secret.Data))
	})

	It("rotate when due, also after a disconnection from the hub", func(ctx SpecContext) {
		start := time.Now()
		jumping := testingclock.NewFakePassiveClock(start)
		link, err := env.NewLink(strings.TrimPrefix(hub.URL, "https://"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		first.startAgent(ctx, first.hubConfigOfAgent(ctx), jumping)
		second.startAgent(ctx, link.Config(second.hubConfigOfAgent(ctx)), jumping)
		leaving := second.askFor(ctx, "deleted-meanwhile", 10*time.Minute)
		before := map[*place][]byte{}
		for _, p := range []*place{first, second} {
			p.askFor(ctx, "on-both", 10*time.Minute)
			before[p] = p.expectToken(ctx, "on-both").Data["token"]
		}
		left := string(second.expectToken(ctx, leaving.Name).Data["token"])
		rotated := func(p *place) func() []byte {
			return func() []byte {
				secret, _ := p.secretOf(ctx, "on-both")
				return secret.Data["token"]
			}
		}

		link.Cut()
		Expect(hubClient.Delete(ctx, leaving)).To(Succeed())
		jumping.SetTime(start.Add(9 * time.Minute))
		first.touch(ctx, "on-both")
		second.touch(ctx, "on-both")
		Eventually(rotated(first)).ShouldNot(Or(BeEmpty(), Equal(before[first])))
		first.expectToken(ctx, "on-both")
		Expect(rotated(second)()).To(Equal(before[second]))
		Expect(second.reviewed(ctx, string(before[second]))).To(BeTrue(), "it is valid meanwhile")
		_, err = second.accountOf(ctx, leaving.Name)
		Expect(err).NotTo(HaveOccurred(), "the agent is disconnected")

		By("reconnecting")
		link.Mend()
		Eventually(rotated(second)).ShouldNot(Or(BeEmpty(), Equal(before[second])))
		second.expectToken(ctx, "on-both")
		second.expectNoAccount(ctx, leaving.Name)
		Eventually(second.reviewed).WithArguments(ctx, left).Should(BeFalse())
	})
})

var _ = Describe("A ManagedServiceAccount on each of two members", func() {
	// leeway is how long an API server accepts an expired token, because of differing clocks.
	const leeway = time.Minute

	// put stores a token with this issue time and expiry in the Secret and returns it.
	put := func(ctx context.Context, p *place, name string, ago, left time.Duration) string {
		GinkgoHelper()
		secret := p.expectToken(ctx, name)
		now := time.Now()
		token := p.with(string(secret.Data["token"]), now.Add(-ago), now.Add(left))
		Expect(p.reviewed(ctx, token)).To(BeTrue(), "it is a valid token of this account")
		secret.Data["token"] = []byte(token)
		Expect(hubClient.Update(ctx, secret)).To(Succeed())
		return token
	}
	// expectAnother waits for the next token.
	expectAnother := func(ctx context.Context, p *place, name, than string) string {
		GinkgoHelper()
		Eventually(func() string {
			secret, _ := p.secretOf(ctx, name)
			return string(secret.Data["token"])
		}).ShouldNot(Or(BeEmpty(), Equal(than)))
		token := string(p.expectToken(ctx, name).Data["token"])
		Expect(p.reviewed(ctx, token)).To(BeTrue())
		return token
	}

	It("rotates a short token, and the earlier one expires", func(ctx SpecContext) {
		ending, current := map[*place]string{}, map[*place]string{}
		for _, p := range []*place{first, second} {
			p.startAgent(ctx, p.hubConfigOfAgent(ctx), clock.RealClock{})
			p.askFor(ctx, "rotating", 10*time.Minute)
			p.expectToken(ctx, "rotating")
		}
		for _, p := range []*place{first, second} {
			// Three quarters of its lifetime are over after half a second at the earliest.
			soon := put(ctx, p, "rotating", 7*time.Second, 3*time.Second)
			expectAnother(ctx, p, "rotating", soon)
			// An API server accepts this one for some more seconds.
			ending[p] = put(ctx, p, "rotating", leeway, 15*time.Second-leeway)
			current[p] = expectAnother(ctx, p, "rotating", ending[p])
		}
		for _, p := range []*place{first, second} {
			Eventually(p.reviewed).WithArguments(ctx, ending[p]).Should(BeFalse())
			Expect(p.reviewed(ctx, current[p])).To(BeTrue(), "the token expired, and the account remains")
		}
	})

	It("rotates within the lifetime of a token, which the member accepts until it expires", Label("matrix"), func(ctx SpecContext) {
		earlier, current := map[*place]string{}, map[*place]string{}
		began := time.Now()
		for _, p := range []*place{first, second} {
			p.startAgent(ctx, p.hubConfigOfAgent(ctx), clock.RealClock{})
			p.askFor(ctx, "rotating-slowly", 10*time.Minute)
			earlier[p] = put(ctx, p, "rotating-slowly", 0, 20*time.Second)
		}
		for _, p := range []*place{first, second} {
			current[p] = expectAnother(ctx, p, "rotating-slowly", earlier[p])
		}
		for _, p := range []*place{first, second} {
			Eventually(p.reviewed, "3m").WithArguments(ctx, earlier[p]).Should(BeFalse())
			Expect(time.Now()).To(BeTemporally(">=", began.Add(20*time.Second)))
			Expect(p.reviewed(ctx, current[p])).To(BeTrue())
		}
	})
})
