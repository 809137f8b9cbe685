// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A Work of a user who can only create Works", func() {
	It("places nothing in reserved namespaces, and no token Secret and certificate request anywhere", func(ctx SpecContext) {
		const author = "author-of-works"
		for _, object := range []client.Object{
			&rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: author},
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works"}, Verbs: []string{"create"}}},
			},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: author},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: author},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: author}},
			},
		} {
			expect.CreatedForSpec(ctx, hubClient, object)
		}
		config, err := hub.ConfigFor(author)
		Expect(err).NotTo(HaveOccurred())
		asAuthor := expect.Client(build.Unlimited(config), testScheme())

		namespace := expect.FreshNamespace(ctx, memberClient)
		house := []string{authenticationv1beta1.AccountNamespace, clusterv1beta1.SystemNamespace, ownNamespace}
		for _, name := range house {
			Expect(client.IgnoreAlreadyExists(memberClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		}
		texts := []string{
			fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {namespace: %q, name: token, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}`, namespace),
			fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %q, name: beside}}`, namespace),
		}
		for _, name := range house {
			texts = append(texts,
				fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %q, labels: {placed: "true"}}}`, name),
				fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {namespace: %q, name: a}, spec: {serviceAccountName: cluster-gateway, containers: [{name: main, image: "example.com/main:1"}]}}`, name),
				fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %q, name: a}}`, name),
				fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %q, name: a}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}}`, name))
		}
		// The controller manager approves requests of an administrator for a node's certificate.
		texts = append(texts, `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: node}, `+
			`spec: {signerName: kubernetes.io/kube-apiserver-client-kubelet, usages: [client auth], request: bm9uZQ==}}`)
		Expect(asAuthor.Create(ctx, &placementv1beta1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "into-the-house"},
			Spec:       placementv1beta1.WorkSpec{Workload: placementv1beta1.WorkloadTemplate{Manifests: manifests(texts...)}},
		})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, "into-the-house") })

		want := []outcome{refused(placementv1beta1.ReasonReserved), applied()}
		for range texts[2:] {
			want = append(want, refused(placementv1beta1.ReasonReserved))
		}
		Eventually(reportedOf(ctx, "into-the-house")).Should(Equal(want))
		Expect(message(ctx, "into-the-house", 0, placementv1beta1.ConditionApplied)).To(ContainSubstring("such a token never expires; use a ManagedServiceAccount"))
		Expect(message(ctx, "into-the-house", 3, placementv1beta1.ConditionApplied)).To(ContainSubstring(fmt.Sprintf("is in namespace %q, in which the fleet keeps its accounts", house[0])))
		for _, name := range house {
			for _, object := range []client.Object{&corev1.Pod{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{}} {
				Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: name, Name: "a"}, object)).To(Satisfy(apierrors.IsNotFound), "%T in %s", object, name)
			}
			untouched := &corev1.Namespace{}
			Expect(memberClient.Get(ctx, client.ObjectKey{Name: name}, untouched)).To(Succeed())
			Expect(untouched.Labels).NotTo(HaveKey("placed"))
			Expect(untouched.OwnerReferences).To(BeEmpty())
		}
		Expect(memberClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "token"}, &corev1.Secret{})).To(Satisfy(apierrors.IsNotFound))
	})
})
