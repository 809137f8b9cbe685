// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// namespacedApplier is the account with which the suite's agent applies placements of a namespace.
const namespacedApplier = "deployer"

var _ = Describe("A Work of a placement in a namespace", func() {
	It("is applied with the rights of the namespace's account", func(ctx SpecContext) {
		ns, foreign := expect.FreshNamespace(ctx, memberClient), expect.FreshNamespace(ctx, memberClient)
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: namespacedApplier}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}},
		}}
		Expect(memberClient.Create(ctx, role)).To(Succeed())
		Expect(memberClient.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: namespacedApplier},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: namespacedApplier},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: namespacedApplier}},
		})).To(Succeed())

		name := ns + ".settings-work"
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: hubNamespace, Name: name, Labels: map[string]string{placementv1beta1.ParentPlacementNamespaceLabel: ns},
		}}
		work.Spec.Workload.Manifests = manifests(build.ConfigMapText(ns, "a", "x", "1"), build.ConfigMapText(foreign, "a", "x", "1"),
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: `+ns+`}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`)
		Expect(hubClient.Create(ctx, work)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, name) })
		// The account has neither the right to get nor to create objects.
		denied := Or(Equal(refused("FailedToFindObjInMemberCluster")), Equal(refused("ManifestApplyFailed")))
		Eventually(reportedOf(ctx, name)).Should(HaveExactElements(applied(), denied, denied))
		Expect(expect.Data(ctx, memberClient, ns, "a")()).To(Equal(map[string]string{"x": "1"}))
		Expect(expect.Data(ctx, memberClient, foreign, "a")()).To(BeNil())
		Expect(message(ctx, name, 1, "Applied")).To(MatchRegexp(`ServiceAccount "deployer" of namespace "` + ns + `" cannot (get|create) configmaps in namespace "` + foreign + `"`))

		By("applying changes and removing objects that left the Work")
		changeWork(ctx, name, build.ConfigMapText(ns, "a", "x", "2"))
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(Equal(map[string]string{"x": "2"}))
		changeWork(ctx, name)
		Eventually(expect.Data(ctx, memberClient, ns, "a")).Should(BeNil())
	})
})
