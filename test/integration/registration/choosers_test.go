// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// userWith returns a client of a user who has only these rights, in one namespace.
func userWith(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	Expect(hubClient.Create(ctx, &rbacv1.Role{ObjectMeta: build.In(namespace, name), Rules: rules})).To(Succeed())
	Expect(hubClient.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: build.In(namespace, name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name + "-" + namespace}}})).To(Succeed())
	return asUser(name + "-" + namespace)
}

var _ = Describe("A user with rights in a registration namespace", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = makeNamespace(ctx) })

	It("cannot choose the agent that another's kubeconfig installs, also not by replacing the kubeconfig first", func(ctx SpecContext) {
		user := userWith(ctx, namespace, "updater",
			rbacv1.PolicyRule{APIGroups: []string{registrationv1alpha1.GroupName}, Resources: []string{"clusters"}, Verbs: []string{"get", "patch"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"own"}, Verbs: []string{"get"}})
		cluster := &registrationv1alpha1.Cluster{ObjectMeta: build.In(namespace, "imported")}
		cluster.Spec.KubeConfigSecret = "admin"
		Expect(hubClient.Create(ctx, cluster)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hubClient.Delete(ctx, cluster))).To(Succeed()) })
		patch := func(spec string) error {
			return user.Patch(ctx, cluster.DeepCopy(), expect.MergePatch(`{"spec":`+spec+`}`), client.DryRunAll)
		}
		Eventually(func() error { return patch(`{"redeployAgentGeneration":1}`) }).Should(Succeed())
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("cannot choose the agent that is installed with the kubeconfig in Secret admin")))
		// The policy takes effect a moment after its creation.
		Eventually(func() error { return patch(`{"privateRepoURL":"registry.example.org"}`) }).Should(refused)
		// The gateway names the kubeconfig of a Cluster of Cluster API again.
		Expect(patch(`{"privateRepoURL":"registry.example.org","kubeConfigSecret":null}`)).To(refused)
		Expect(patch(`{"privateRepoURL":"registry.example.org","kubeConfigSecret":"own"}`)).To(refused)

		By("granting the right to the Secret")
		Expect(hubClient.Create(ctx, &rbacv1.Role{ObjectMeta: build.In(namespace, "reader"), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"admin"}, Verbs: []string{"update"}}}})).To(Succeed())
		Expect(hubClient.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: build.In(namespace, "reader"),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "updater-" + namespace}}})).To(Succeed())
		Eventually(func() error { return patch(`{"privateRepoURL":"registry.example.org","kubeConfigSecret":"own"}`) }).Should(Succeed())
	})

	It("cannot keep a registration request from its deletion", func(ctx SpecContext) {
		create := rbacv1.PolicyRule{APIGroups: []string{registrationv1alpha1.GroupName}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"}}
		bearer := userWith(ctx, namespace, "bearer", create)
		request := func(change func(*registrationv1alpha1.ClusterRegistration)) client.Object {
			of := &registrationv1alpha1.ClusterRegistration{ObjectMeta: build.In(namespace, "request-")}
			of.GenerateName, of.Name = of.Name, ""
			change(of)
			return of
		}
		finalizer := func(of *registrationv1alpha1.ClusterRegistration) { of.Finalizers = []string{"example.org/keep"} }
		refused := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("a ClusterRegistration has no label but")))
		Eventually(func() error { return bearer.Create(ctx, request(finalizer), client.DryRunAll) }).Should(refused)
		for _, change := range []func(*registrationv1alpha1.ClusterRegistration){
			func(of *registrationv1alpha1.ClusterRegistration) {
				of.Labels = map[string]string{registrationv1alpha1.LabelClusterManagement: "others"}
			},
			func(of *registrationv1alpha1.ClusterRegistration) {
				of.Annotations = map[string]string{"example.org/a": "b"}
			},
		} {
			Expect(bearer.Create(ctx, request(change), client.DryRunAll)).To(refused)
		}
		Expect(bearer.Create(ctx, request(func(*registrationv1alpha1.ClusterRegistration) {}), client.DryRunAll)).To(Succeed())
		create.Verbs = append(create.Verbs, "delete")
		trusted := userWith(ctx, namespace, "trusted", create)
		Eventually(func() error { return trusted.Create(ctx, request(finalizer), client.DryRunAll) }).Should(Succeed())
	})

	It("cannot label a member for the gateway by a MemberCluster of fleet.azure.com", func(ctx SpecContext) {
		name := "operator-" + namespace
		expect.Created(ctx, hubClient,
			&rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{azurefleetv1alpha1.GroupVersion.Group}, Resources: []string{"memberclusters"}, Verbs: []string{"create"}}}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}})
		operator := asUser(name)
		member := &azurefleetv1alpha1.MemberCluster{ObjectMeta: build.Named(namespace)}
		member.Spec.State = azurefleetv1alpha1.ClusterStateJoin
		member.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: clusterv1beta1.MemberNamespace(namespace), Name: clusterv1beta1.AgentAccount}
		Eventually(func() error { return operator.Create(ctx, member.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		member.Labels = map[string]string{"fleetgate.io/identity": "ServiceAccount"}
		Expect(operator.Create(ctx, member, client.DryRunAll)).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("are written by the hub"))))
	})
})
