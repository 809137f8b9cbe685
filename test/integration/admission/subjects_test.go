// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// memberWith returns a MemberCluster with this subject as its agent's identity.
func memberWith(name string, identity rbacv1.Subject) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta1.MemberClusterSpec{Identity: identity}}
}

var _ = Describe("The identity of a member's agent", func() {
	mallory := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	own := func(member string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentAccount}
	}

	It("can be set by a user with the right to set identities, not by one who can only update members", func(ctx SpecContext) {
		namespace := newNamespace(ctx) // The name must be unique among the specs.
		member, name := memberWith(namespace, own(namespace)), "operator-"+namespace
		config, err := hub.ConfigFor(name)
		Expect(err).NotTo(HaveOccurred())
		operator := clientFor(config)
		bindClusterRole(ctx, name, name, rbacv1.PolicyRule{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"create", "get", "patch", "update"},
		})
		const refusal = "that identity gets the Works, the Secrets and the tunnel of the member"
		Eventually(func() error { return operator.Create(ctx, member) }).Should(Succeed(), "a member with its own account")
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, member)).To(Succeed()) })
		Expect(operator.Create(ctx, memberWith(namespace+"-2", mallory))).To(beForbidden(refusal))
		Expect(change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Spec.Identity = mallory })).To(beForbidden(refusal))
		Expect(change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Labels = map[string]string{"region": "eu"} })).To(Succeed())

		By("granting the right for this member")
		bindClusterRole(ctx, "set-"+name, name, rbacv1.PolicyRule{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, ResourceNames: []string{namespace}, Verbs: []string{"set-identity"},
		})
		Eventually(func() error {
			return change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Spec.Identity = mallory })
		}).Should(Succeed())
		Expect(operator.Create(ctx, memberWith(namespace+"-2", mallory))).To(beForbidden(refusal), "the right names another member")
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(member), member)).To(Succeed())
		Expect(member.Spec.Identity.Name).To(Equal("mallory"))
	})
})
