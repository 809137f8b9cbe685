// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

var _ = Describe("A grant that the member lost", func() {
	It("is asked for again at once, by what a real API server says", func(ctx SpecContext) {
		config := configFor(memberName, editor, team)
		must(ctx, config, "", "-n", namespace, "get", "configmaps")

		By("somebody taking the names out of the agent's role")
		account := authenticationv1beta1.UsernameIn(authenticationv1beta1.AccountNamespace, authenticationv1beta1.GatewayAccount)
		mayActAs := func() (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "impersonate:user-info", Group: "authentication.k8s.io", Resource: "users", Name: editor}}}
			err := memberClient.Create(ctx, review)
			return review.Status.Allowed, err
		}
		Expect(mayActAs()).To(BeTrue())
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-impersonate"}}
		Expect(memberClient.Patch(ctx, role, client.RawPatch("application/merge-patch+json", []byte(`{"rules":[]}`)))).To(Succeed())
		Eventually(mayActAs).Should(BeFalse())
		must(ctx, config, "", "-n", namespace, "get", "configmaps")
		Expect(mayActAs()).To(BeTrue())
	})
})
