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
	"errors"
	"os"
	"path/filepath"
	"strings"
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

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/boundtoken"
	"fleetgate.io/fleetgate/test/support/expect"
)

func askFor(ctx context.Context, name string, validity time.Duration) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	return first.askFor(ctx, name, validity)
}

// askFor creates a ManagedServiceAccount and removes it after the spec.
func (p *place) askFor(ctx context.Context, name string, validity time.Duration) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
	account.Spec.Rotation = authenticationv1beta1.ManagedServiceAccountRotation{Validity: metav1.Duration{Duration: validity}}
	makeAccount(ctx, account)
	return account
}

// makeAccount replaces an account of the same name that a controller of an earlier spec may have
// re-created.
func makeAccount(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount) {
	GinkgoHelper()
	Eventually(func() error {
		err := hubClient.Create(ctx, account)
		if apierrors.IsAlreadyExists(err) {
			return errors.Join(err, client.IgnoreNotFound(hubClient.Delete(ctx, account.DeepCopy())))
		}
		return err
	}).Should(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(hubClient.Delete(ctx, account))).To(Succeed())
	})
}

// askOnce creates one without rotation.
func askOnce(ctx context.Context, name string, validity time.Duration) *authenticationv1beta1.ManagedServiceAccount {
	GinkgoHelper()
	account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: name}}
	account.Spec.Rotation = authenticationv1beta1.ManagedServiceAccountRotation{Enabled: ptr.To(false), Validity: metav1.Duration{Duration: validity}}
	makeAccount(ctx, account)
	return account
}

func reviewed(ctx context.Context, token string) bool {
	GinkgoHelper()
	return first.reviewed(ctx, token)
}

// reviewed reports whether the member accepts a token.
func (p *place) reviewed(ctx context.Context, token string) bool {
	GinkgoHelper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	Expect(p.client.Create(ctx, review)).To(Succeed())
	return review.Status.Authenticated
}

// with returns the same token with other times, signed by the member's key: the API issues none for
// less than ten minutes.
func (p *place) with(token string, from, until time.Time) string {
	GinkgoHelper()
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	Expect(err).NotTo(HaveOccurred())
	var payload map[string]any
	Expect(json.Unmarshal(text, &payload)).To(Succeed())
	payload["iat"], payload["nbf"], payload["exp"] = from.Unix(), from.Unix(), until.Unix()
	text, err = json.Marshal(payload)
	Expect(err).NotTo(HaveOccurred())
	unsigned := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)

	encoded, err := os.ReadFile(filepath.Join(p.cluster.Dir, "pki", "sa.key"))
	Expect(err).NotTo(HaveOccurred())
	block, _ := pem.Decode(encoded)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	digest := sha256.Sum256([]byte(unsigned))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	Expect(err).NotTo(HaveOccurred())
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	signed := unsigned + "." + base64.RawURLEncoding.EncodeToString(signature)
	issued.Store(signed, nil)
	return signed
}

func secretOf(ctx context.Context, name string) (*corev1.Secret, error) {
	return first.secretOf(ctx, name)
}

func (p *place) secretOf(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	return secret, hubClient.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, secret)
}

func accountOf(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	return first.accountOf(ctx, name)
}

func (p *place) accountOf(ctx context.Context, name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	return account, p.client.Get(ctx, client.ObjectKey{Namespace: p.accounts, Name: name}, account)
}

func statusOf(ctx context.Context, name string) authenticationv1beta1.ManagedServiceAccountStatus {
	return first.statusOf(ctx, name)
}

func (p *place) statusOf(ctx context.Context, name string) authenticationv1beta1.ManagedServiceAccountStatus {
	var account authenticationv1beta1.ManagedServiceAccount
	_ = hubClient.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, &account)
	return account.Status
}

func conditionOf(ctx context.Context, name, kind string) metav1.Condition {
	return expect.Condition(statusOf(ctx, name).Conditions, kind)
}

func whoami(ctx context.Context, token string, ca []byte, as ...string) (authenticationv1.UserInfo, error) {
	return first.whoami(ctx, token, ca, as...)
}

// whoami returns the user that the member's API server derives from a token.
func (p *place) whoami(ctx context.Context, token string, ca []byte, as ...string) (authenticationv1.UserInfo, error) {
	config := &rest.Config{Host: p.cluster.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	if len(as) > 0 {
		config.Impersonate = rest.ImpersonationConfig{UserName: as[0], Groups: as[1:]}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review := &authenticationv1.SelfSubjectReview{}
	err = c.Create(ctx, review)
	return review.Status.UserInfo, err
}

func expectToken(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	return first.expectToken(ctx, name)
}

// expectToken waits until the Secret has a working token of the account in the documented format,
// and the status reports it.
func (p *place) expectToken(ctx context.Context, name string) *corev1.Secret {
	GinkgoHelper()
	var secret *corev1.Secret
	Eventually(func(g Gomega) {
		var err error
		secret, err = p.secretOf(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(secret.Type).To(Equal(corev1.SecretTypeOpaque))
		g.Expect(secret.Labels).To(HaveKeyWithValue(authenticationv1beta1.LabelManagedServiceAccount, "true"))
		g.Expect(secret.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "ManagedServiceAccount"), HaveField("Name", name))))
		g.Expect(secret.Data).To(HaveLen(2))
		g.Expect(secret.Data).To(HaveKeyWithValue("ca.crt", p.cluster.CABundle))
		user, err := p.whoami(ctx, string(secret.Data["token"]), secret.Data["ca.crt"])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.Username).To(Equal("system:serviceaccount:" + p.accounts + ":" + name))
		account, err := p.accountOf(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(user.UID).To(BeEquivalentTo(account.UID))
		g.Expect(account.Labels).To(HaveKeyWithValue(authenticationv1beta1.LabelManagedServiceAccount, "true"))

		status, claims := p.statusOf(ctx, name), claimsOf(secret)
		g.Expect(status.TokenSecretRef).To(HaveValue(HaveField("Name", name)))
		g.Expect(status.ExpirationTimestamp).To(HaveValue(HaveField("Time", BeTemporally("==", claims.Expires))))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, authenticationv1beta1.ConditionSecretCreated)).To(BeTrue())
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, authenticationv1beta1.ConditionTokenReported)).To(BeTrue())
	}).Should(Succeed())
	return secret
}

func claimsOf(secret *corev1.Secret) boundtoken.Claims {
	claims, _ := boundtoken.ParseClaims(string(secret.Data["token"]))
	return claims
}

func touch(ctx context.Context, name string) {
	GinkgoHelper()
	first.touch(ctx, name)
}

// touch triggers a reconcile of the account.
func (p *place) touch(ctx context.Context, name string) {
	GinkgoHelper()
	account, err := p.accountOf(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	base := account.DeepCopy()
	metav1.SetMetaDataAnnotation(&account.ObjectMeta, "touched", time.Now().String())
	Expect(p.client.Patch(ctx, account, client.MergeFrom(base))).To(Succeed())
}

func expectNoAccount(ctx context.Context, name string) {
	GinkgoHelper()
	first.expectNoAccount(ctx, name)
}

func (p *place) expectNoAccount(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := p.accountOf(ctx, name)
		return err
	}).Should(Satisfy(apierrors.IsNotFound))
}

// expectNoSecret waits for the garbage collector, which discovers new kinds every 30 seconds only.
func expectNoSecret(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := secretOf(ctx, name)
		return err
	}, "90s").Should(Satisfy(apierrors.IsNotFound))
}
