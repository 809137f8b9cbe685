// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount"
)

// seen are all tokens that the tests came across.
var seen sync.Map

// askFor makes a ManagedServiceAccount, which goes with the spec.
func askFor(ctx context.Context, name string, validity time.Duration) *msav1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &msav1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
	account.Spec.Rotation = msav1beta1.ManagedServiceAccountRotation{Validity: metav1.Duration{Duration: validity}}
	makeAccount(ctx, account)
	return account
}

// makeAccount waits for one of the same name to be gone: a spec's agent may stop
// before it took its finalizer off.
func makeAccount(ctx context.Context, account *msav1beta1.ManagedServiceAccount) {
	GinkgoHelper()
	Eventually(func() error { return hubClient.Create(quiet(ctx), account) }).Should(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(hubClient.Delete(quiet(ctx), account))).To(Succeed())
	})
}

// askOnce makes one whose token is never refreshed.
func askOnce(ctx context.Context, name string, validity time.Duration) *msav1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &msav1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
	account.Spec.Rotation = msav1beta1.ManagedServiceAccountRotation{Enabled: ptr.To(false), Validity: metav1.Duration{Duration: validity}}
	makeAccount(ctx, account)
	return account
}

// reviewed reports whether the member takes a token.
func reviewed(ctx context.Context, token string) bool {
	GinkgoHelper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	Expect(memberClient.Create(quiet(ctx), review)).To(Succeed())
	return review.Status.Authenticated
}

// shorten is the same token with a shorter life from now on, signed as the
// member's API server signs.
func shorten(token string, life time.Duration) string {
	GinkgoHelper()
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	Expect(err).NotTo(HaveOccurred())
	var payload map[string]any
	Expect(json.Unmarshal(text, &payload)).To(Succeed())
	now := time.Now()
	payload["iat"], payload["nbf"], payload["exp"] = now.Unix(), now.Unix(), now.Add(life).Unix()
	text, err = json.Marshal(payload)
	Expect(err).NotTo(HaveOccurred())
	unsigned := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)

	encoded, err := os.ReadFile(filepath.Join(member.Dir, "pki", "sa.key"))
	Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(encoded)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	digest := sha256.Sum256([]byte(unsigned))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	Expect(err).NotTo(HaveOccurred())
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func secretOf(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := hubClient.Get(quiet(ctx), client.ObjectKey{Namespace: hubNamespace, Name: name}, secret)
	if token := string(secret.Data[msav1beta1.SecretKeyToken]); len(token) > 100 {
		seen.Store(token, nil)
	}
	return secret, err
}

func accountOf(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	return account, memberClient.Get(quiet(ctx), client.ObjectKey{Namespace: msav1beta1.AccountNamespace, Name: name}, account)
}

func statusOf(ctx context.Context, name string) msav1beta1.ManagedServiceAccountStatus {
	var account msav1beta1.ManagedServiceAccount
	_ = hubClient.Get(quiet(ctx), client.ObjectKey{Namespace: hubNamespace, Name: name}, &account)
	return account.Status
}

func conditionOf(ctx context.Context, name, kind string) metav1.Condition {
	if condition := meta.FindStatusCondition(statusOf(ctx, name).Conditions, kind); condition != nil {
		return *condition
	}
	return metav1.Condition{}
}

// whoami is the user that the member's API server takes the holder of a token for.
func whoami(ctx context.Context, token string, ca []byte, as ...string) (authenticationv1.UserInfo, error) {
	config := &rest.Config{Host: member.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	if len(as) > 0 {
		config.Impersonate = rest.ImpersonationConfig{UserName: as[0], Groups: as[1:]}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review := &authenticationv1.SelfSubjectReview{}
	err = c.Create(quiet(ctx), review)
	return review.Status.UserInfo, err
}

// expectToken waits until the Secret holds a token of the account with which the
// member can be reached, all is as the reference has it, and the status says so.
func expectToken(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	var secret *corev1.Secret
	Eventually(func(g Gomega) {
		var err error
		secret, err = secretOf(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
		g.Expect(secret.Labels).To(HaveKeyWithValue(msav1beta1.LabelManagedServiceAccount, "true"))
		g.Expect(secret.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ManagedServiceAccount"), HaveField("Name", name))))
		g.Expect(secret.Data).To(HaveLen(2))
		g.Expect(secret.Data).To(HaveKeyWithValue("ca.crt", member.CABundle))
		user, err := whoami(ctx, string(secret.Data["token"]), secret.Data["ca.crt"])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.Username).To(Equal("system:serviceaccount:open-cluster-management-managed-serviceaccount:" + name))
		account, err := accountOf(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.UID).To(BeEquivalentTo(account.UID))
		g.Expect(account.Labels).To(HaveKeyWithValue(msav1beta1.LabelManagedServiceAccount, "true"))

		status, claims := statusOf(ctx, name), claimsOf(secret)
		g.Expect(status.TokenSecretRef).To(HaveValue(HaveField("Name", name)))
		g.Expect(status.ExpirationTimestamp).To(HaveValue(HaveField("Time", BeTemporally("==", claims.Expires))))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, msav1beta1.ConditionSecretCreated)).To(BeTrue())
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, msav1beta1.ConditionTokenReported)).To(BeTrue())
	}).Should(Succeed())
	return secret
}

func claimsOf(secret *corev1.Secret) serviceaccount.Claims {
	claims, _ := serviceaccount.ParseClaims(string(secret.Data["token"]))
	return claims
}

// touch makes the rotator look at the account.
func touch(ctx context.Context, name string) {
	GinkgoHelper()
	account, err := accountOf(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	base := account.DeepCopy()
	metav1.SetMetaDataAnnotation(&account.ObjectMeta, "touched", time.Now().String())
	Expect(memberClient.Patch(quiet(ctx), account, client.MergeFrom(base))).To(Succeed())
}

func expectNoAccount(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := accountOf(ctx, name)
		return err
	}).Should(Satisfy(apierrors.IsNotFound))
}

// expectNoSecret waits for the garbage collector, which looks for new kinds every
// half minute only.
func expectNoSecret(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := secretOf(ctx, name)
		return err
	}, "90s").Should(Satisfy(apierrors.IsNotFound))
}
