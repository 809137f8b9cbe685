// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

const limitedUser = "agent-with-few-rights"

var _ = Describe("An agent with restricted rights on its member", func() {
	BeforeEach(func(ctx SpecContext) {
		allow(ctx, "records", rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"appliedworks", "appliedworks/status"}, Verbs: []string{"*"}})
		allow(ctx, "objects", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}})
		config, err := member.ConfigFor(limitedUser)
		Expect(err).NotTo(HaveOccurred())
		agent.Stop()
		agent = startAgent(config)
	})
	AfterEach(restartAgent) // before cleanup, because removing Works needs rights

	It("applies what its rights allow and names the missing rule for the rest", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "few-rights", nil, build.ConfigMapText(ns, "a", "x", "1"),
			`{apiVersion: v1, kind: Secret, metadata: {namespace: `+ns+`, name: a}, stringData: {x: hidden}}`)
		Eventually(reportedOf(ctx, "few-rights")).Should(HaveExactElements(applied(), refused("FailedToFindObjInMemberCluster")))
		Expect(message(ctx, "few-rights", 1, "Applied")).To(ContainSubstring(`{apiGroups: [""], resources: ["secrets"], verbs: [get]}`))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))

		By("continuing once it has the right")
		allow(ctx, "more", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}})
		Eventually(reported(ctx, "few-rights")).Should(beDone())
	})

	It("reports a forbidden watch and polls instead", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "blind", nil, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditionOf(ctx, "blind", placementv1beta1.ConditionWatched)).Should(Equal("False/WatchForbidden"))
		Expect(getWork(ctx, "blind").Status.Conditions).To(ContainElement(And(HaveField("Type", placementv1beta1.ConditionWatched),
			HaveField("Message", ContainSubstring(`{apiGroups: [""], resources: ["configmaps"], verbs: [list, watch]}`)))))
		Eventually(reported(ctx, "blind")).Should(beDone())

		Expect(memberClient.Patch(ctx, expect.ConfigMap(ctx, memberClient, ns, "a"), expect.MergePatch(`{"data":{"x":"2"}}`))).To(Succeed())
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "1"}), "found by polling")

		allow(ctx, "watching", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}})
		Eventually(conditionOf(ctx, "blind", placementv1beta1.ConditionWatched)).Should(BeEmpty())
	})

	It("reports a forbidden removal and removes the object once allowed", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		allow(ctx, "secrets", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "patch"}})
		secret := `{apiVersion: v1, kind: Secret, metadata: {namespace: ` + ns + `, name: a}}`
		createWork(ctx, "stuck-with-it", nil, build.ConfigMapText(ns, "a"), secret)
		Eventually(reportedOf(ctx, "stuck-with-it")).Should(HaveExactElements(applied(), applied()))
		changeWork(ctx, "stuck-with-it", build.ConfigMapText(ns, "a"))
		Eventually(conditionOf(ctx, "stuck-with-it", placementv1beta1.ConditionRemoved)).Should(Equal("False/ObjectsRemain"))
		Expect(removal(ctx, "stuck-with-it")).To(ContainSubstring(`{apiGroups: [""], resources: ["secrets"], verbs: [delete]}`))
		Expect(reported(ctx, "stuck-with-it")(Default)).To(beDone(), "the objects of the Work are applied")

		allow(ctx, "removing", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"delete"}})
		Eventually(conditionOf(ctx, "stuck-with-it", placementv1beta1.ConditionRemoved)).Should(BeEmpty())
		_, err := expect.Found(ctx, memberClient, "v1", "Secret", ns, "a")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("names rights that it cannot grant", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		allow(ctx, "roles", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}})
		createWork(ctx, "escalation", nil, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: `+ns+`, name: a},
			rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`)
		Eventually(reportedOf(ctx, "escalation")).Should(HaveExactElements(refused("ManifestApplyFailed")))
		Expect(message(ctx, "escalation", 0, "Applied")).To(And(ContainSubstring("attempting to grant"), ContainSubstring("secrets")))
	})
})

var _ = Describe("An agent without the right to write AppliedWorks", func() {
	AfterEach(restartAgent)

	It("applies nothing and names the missing rule", func(ctx SpecContext) {
		allow(ctx, "configmaps", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
		config, err := member.ConfigFor(limitedUser)
		Expect(err).NotTo(HaveOccurred())
		agent.Stop()
		agent = startAgent(config)
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "no-record", nil, build.ConfigMapText(ns, "a"))
		Eventually(reportedOf(ctx, "no-record")).Should(HaveExactElements(refused("ManifestApplyFailed")))
		Expect(message(ctx, "no-record", 0, "Applied")).To(ContainSubstring(
			`{apiGroups: ["placement.kubernetes-fleet.io"], resources: ["appliedworks"], verbs: [get]}`))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(BeNil())

		By("continuing once it has the right")
		allow(ctx, "records", rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"appliedworks", "appliedworks/status"}, Verbs: []string{"*"}})
		Eventually(reported(ctx, "no-record")).Should(beDone())
	})
})

// allow grants the limited agent a right on the member for the rest of the spec.
func allow(ctx context.Context, name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Name: "few-rights-" + name}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: limitedUser}}},
	}
	for _, object := range objects {
		Expect(memberClient.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(memberClient.Delete(ctx, object)).To(Succeed()) })
	}
}
