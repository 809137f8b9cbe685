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

// memberWith is a MemberCluster whose agent comes as a subject.
func memberWith(name string, identity rbacv1.Subject) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta1.MemberClusterSpec{Identity: identity}}
}

var _ = Describe("The identity of a member's agent", func() {
	mallory := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	own := func(member string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: clusterv1beta1.MemberNamespace(member), Name: clusterv1beta1.AgentAccount}
	}

	It("is not changed to a user by who may update members only, and is by who may set identities", func(ctx SpecContext) {
		namespace := newNamespace(ctx) // A name that no other spec has.
		member, name := memberWith(namespace, own(namespace)), "operator-"+namespace
		config, err := hub.ConfigFor(name)
		Expect(err).NotTo(HaveOccurred())
		operator := clientFor(config)
		bindClusterRole(ctx, name, name, rbacv1.PolicyRule{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"create", "get", "patch", "update"},
		})
		const refusal = "that identity gets the Works, the Secrets and the tunnel of the member"
		Eventually(func() error { return operator.Create(ctx, member) }).Should(Succeed(), "one that has its own account")
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, member)).To(Succeed()) })
		Expect(operator.Create(ctx, memberWith(namespace+"-2", mallory))).To(beForbidden(refusal))
		Expect(change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Spec.Identity = mallory })).To(beForbidden(refusal))
		Expect(change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Labels = map[string]string{"region": "eu"} })).To(Succeed())

		By("the right being given for this member")
		bindClusterRole(ctx, "set-"+name, name, rbacv1.PolicyRule{
			APIGroups: []string{clusterv1beta1.GroupVersion.Group}, Resources: []string{"memberclusters"}, ResourceNames: []string{namespace}, Verbs: []string{"set-identity"},
		})
		Eventually(func() error {
			return change(ctx, operator, member, func(m *clusterv1beta1.MemberCluster) { m.Spec.Identity = mallory })
		}).Should(Succeed())
		Expect(operator.Create(ctx, memberWith(namespace+"-2", mallory))).To(beForbidden(refusal), "the right is for the other member")
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(member), member)).To(Succeed())
		Expect(member.Spec.Identity.Name).To(Equal("mallory"))
	})
})
