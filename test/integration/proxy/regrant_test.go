// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/impersonation"
	"fleetgate.io/fleetgate/test/support/build"
)

// mayActAs reports whether the member lets the gateway's account impersonate a user.
func mayActAs(ctx context.Context, name string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: authenticationv1beta1.UsernameIn(authenticationv1beta1.AccountNamespace, authenticationv1beta1.GatewayAccount),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "impersonate:user-info", Group: "authentication.k8s.io", Resource: "users", Name: name,
		},
	}}
	err := memberClient.Create(ctx, review)
	return review.Status.Allowed, err
}

var _ = Describe("A grant that the member lost", func() {
	// An API server caches for ten seconds whom a user may impersonate. Requests pass that long
	// without the grant.
	It("is requested again when the member rejects the impersonation, and no request fails", func(ctx SpecContext) {
		const idle = "idle"
		bound := bind("idle-edits", "members-edit", user(idle))
		Expect(hubClient.Create(ctx, bound)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(hubClient.Delete(ctx, bound)).To(Succeed()) })
		asEditor, asIdle := configFor(memberName, editor, team), configFor(memberName, idle, team)
		Eventually(func() error {
			_, _, err := kubectl(ctx, asIdle, "", "-n", namespace, "get", "configmaps")
			return err
		}).Should(Succeed())
		must(ctx, asEditor, "", "-n", namespace, "get", "configmaps")
		Expect(mayActAs(ctx, editor)).To(BeTrue())
		Expect(mayActAs(ctx, idle)).To(BeTrue())

		By("removing all names from the agent's role")
		role := &rbacv1.ClusterRole{ObjectMeta: build.Named(impersonation.RoleName)}
		Expect(memberClient.Patch(ctx, role, client.RawPatch(types.MergePatchType, []byte(`{"rules":[]}`)))).To(Succeed())
		Eventually(mayActAs).WithContext(ctx).WithArguments(editor).Should(BeFalse())
		Eventually(func() (bool, error) {
			must(ctx, asEditor, "", "-n", namespace, "get", "configmaps")
			return mayActAs(ctx, editor)
		}).Should(BeTrue())
		Expect(mayActAs(ctx, idle)).To(BeFalse(), "only the user that sent a request has the grant again")
		must(ctx, asIdle, "", "-n", namespace, "get", "configmaps")
	})
})
