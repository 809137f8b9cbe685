// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
)

// signingKey is the member's signing key, and the keys that it accepts.
type signingKey struct{ private, public []byte }

func (k signingKey) paths() (private, public string) {
	pki := filepath.Join(first.cluster.Dir, "pki")
	return filepath.Join(pki, "sa.key"), filepath.Join(pki, "sa.pub")
}

// currentKey returns the present key of the API server.
func currentKey() signingKey {
	GinkgoHelper()
	var k signingKey
	var err error
	private, public := k.paths()
	k.private, err = os.ReadFile(private)
	Expect(err).NotTo(HaveOccurred())
	k.public, err = os.ReadFile(public)
	Expect(err).NotTo(HaveOccurred())
	return k
}

func newSigningKey() signingKey {
	GinkgoHelper()
	private, public, err := env.NewSigningKey()
	Expect(err).NotTo(HaveOccurred())
	return signingKey{private, public}
}

// signWith restarts the member's API server with this key.
func signWith(ctx context.Context, k signingKey) {
	GinkgoHelper()
	private, public := k.paths()
	Expect(os.WriteFile(private, k.private, 0o600)).To(Succeed())
	Expect(os.WriteFile(public, k.public, 0o600)).To(Succeed())
	Expect(first.cluster.APIServer.Restart(ctx)).To(Succeed())
}

// signedBy returns the key ID of a token.
func signedBy(token string) string {
	header, _, _ := strings.Cut(token, ".")
	return header
}

var _ = Describe("The key with which a member signs tokens", Serial, func() {
	tokenIn := func(ctx context.Context, name string) func() (string, error) {
		return func() (string, error) {
			secret, err := secretOf(ctx, name)
			return string(secret.Data[authenticationv1beta1.SecretKeyToken]), err
		}
	}
	var before signingKey
	BeforeEach(func() {
		before = currentKey()
		DeferCleanup(func(ctx SpecContext) { signWith(ctx, before) })
	})

	It("is replaced while the former one is still accepted, and no token becomes invalid before its refresh", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "signed", time.Hour)
		former := string(expectToken(ctx, account.Name).Data[authenticationv1beta1.SecretKeyToken])
		next := newSigningKey()
		signWith(ctx, signingKey{private: next.private, public: slices.Concat(next.public, before.public)})
		Expect(reviewed(ctx, former)).To(BeTrue())
		Expect(tokenIn(ctx, account.Name)()).To(Equal(former))

		By("a refresh")
		base := account.DeepCopy()
		account.Spec.Rotation.Validity = metav1.Duration{Duration: 2 * time.Hour}
		Expect(hubClient.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
		Eventually(tokenIn(ctx, account.Name)).Should(WithTransform(signedBy, Not(Equal(signedBy(former)))))
		current, err := tokenIn(ctx, account.Name)()
		Expect(err).NotTo(HaveOccurred())

		By("removing the former key")
		signWith(ctx, next)
		Expect(reviewed(ctx, former)).To(BeFalse())
		Expect(reviewed(ctx, current)).To(BeTrue())
		touch(ctx, account.Name)
		Consistently(tokenIn(ctx, account.Name), "2s", "200ms").Should(Equal(current))
	})

	It("is replaced at once, and the agent gets another token with the next check", func(ctx SpecContext) {
		startAgent(ctx, clock.RealClock{})
		account := askFor(ctx, "signed-again", time.Hour)
		former := string(expectToken(ctx, account.Name).Data[authenticationv1beta1.SecretKeyToken])
		signWith(ctx, newSigningKey())
		Expect(reviewed(ctx, former)).To(BeFalse())
		touch(ctx, account.Name)
		Eventually(func(g Gomega) {
			current, err := tokenIn(ctx, account.Name)()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current).NotTo(Equal(former))
			g.Expect(reviewed(ctx, current)).To(BeTrue())
		}).Should(Succeed())
	})
})
