// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A ManifestWork", func() {
	It("places nothing in reserved namespaces, and no token Secret and certificate request anywhere", func(ctx SpecContext) {
		ns, texts := expect.FreshNamespace(ctx, memberClient), []string{}
		for _, house := range []string{authenticationv1beta1.AccountNamespace, clusterv1beta1.SystemNamespace} {
			Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: house}}))).To(Succeed())
			texts = append(texts,
				fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %q, name: placed}}`, house),
				fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %q, labels: {placed: "true"}}}`, house))
		}
		texts = append(texts,
			fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {namespace: %q, name: token, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}`, ns),
			`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: node}, spec: {signerName: kubernetes.io/kube-apiserver-client-kubelet, usages: [client auth], request: bm9uZQ==}}`,
			build.ConfigMapText(ns, "beside", "x", "1"))
		createWork(ctx, "into-the-house", workv1.ManifestWorkSpec{}, texts...)
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, "into-the-house") })
		Eventually(expect.Data(ctx, memberClient, ns, "beside")).Should(Equal(map[string]string{"x": "1"}))
		for i := range texts[:6] {
			Eventually(of(ctx, "into-the-house", i)).Should(ContainElement(And(HavePrefix("Applied False"), Or(
				ContainSubstring("in which the fleet keeps its accounts on members"), ContainSubstring("such a token never expires"), ContainSubstring("a request of the agent")))), texts[i])
		}
		for _, house := range []string{authenticationv1beta1.AccountNamespace, clusterv1beta1.SystemNamespace} {
			Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: house, Name: "placed"}, &corev1.ServiceAccount{})).To(Satisfy(apierrors.IsNotFound))
			untouched := &corev1.Namespace{}
			Expect(memberClient.Get(ctx, client.ObjectKey{Name: house}, untouched)).To(Succeed())
			Expect(untouched.Labels).NotTo(HaveKey("placed"))
		}
		Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: ns, Name: "token"}, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound))
	})
})
