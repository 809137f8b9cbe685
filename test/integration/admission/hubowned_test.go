// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/argocd"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
)

func memberCluster(name string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "someone"}},
	}
}

func leaseIn(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "turn"}}
}

var _ = Describe("An object that the hub owns", func() {
	const uid = "0b7a4f2e-1c55-4f0e-9a5f-7a2f4c9b8d10"

	It("is a Work: the member writes its status, not its manifests or origin", func(ctx SpecContext) {
		grant(ctx, rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works", "works/status"}, Verbs: []string{"get", "update", "patch"}})
		member := newMemberIdentity(ctx)
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: memberNamespace, GenerateName: "work-", Labels: map[string]string{placementv1beta1.ParentBindingLabel: "mine"},
		}}
		Expect(masters.Create(ctx, work)).To(Succeed())
		Eventually(func() error {
			return change(ctx, member, work, func(w *placementv1beta1.Work) { w.Finalizers = []string{placementv1beta1.WorkCleanupFinalizer} })
		}).Should(Succeed())
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) {
			w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}
		})).To(beForbidden("only the hub writes them"))
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) { w.Finalizers = append(w.Finalizers, "example.org/stay") })).
			To(beForbidden("with finalizer kubernetes-fleet.io/work-cleanup only"))
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) { w.Finalizers = nil })).To(Succeed())
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentBindingLabel] = "theirs" })).
			To(beForbidden("only the hub writes them"))
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) { w.Annotations = map[string]string{"a": "b"} })).
			To(beForbidden("only the hub writes them"))
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) {
			w.Annotations = map[string]string{placementv1beta1.EpochAnnotation: "2/7"}
		})).To(Succeed())
		Expect(change(ctx, member, work, func(w *placementv1beta1.Work) {
			w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
		})).To(beForbidden("what is in a Work is the hub's"))
	})

	It("cannot be written by a member outside its namespace, whatever rights it has", func(ctx SpecContext) {
		member := newMemberIdentity(ctx)
		bindClusterRole(ctx, "careless", clusterv1beta1.AgentUsername(memberName),
			rbacv1.PolicyRule{APIGroups: []string{"", clusterv1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"create", "update", "get", "set-identity"}})
		settings := func(namespace string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "settings-"}}
		}
		Eventually(func() error { return member.Create(ctx, settings("default")) }).Should(beForbidden("speaks for one member"))
		Expect(member.Create(ctx, settings(memberNamespace))).To(Succeed())
		Expect(member.Create(ctx, memberCluster("another"))).To(beForbidden("speaks for one member"))
		Expect(member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})).To(beForbidden("speaks for one member"))
		Expect(member.Create(ctx, &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: "m2"},
			Spec: clusterv1beta1.InternalMemberClusterSpec{State: clusterv1beta1.ClusterStateJoin}})).To(beForbidden("reports for its own member only"))
	})

	It("is a member's namespace", func(ctx SpecContext) {
		user := everyUser(ctx, "namespaces-"+newNamespace(ctx))
		taken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace("taken")}}
		Eventually(func() error { return user.Create(ctx, taken.DeepCopy()) }).Should(beForbidden("namespace fleet-member-taken belongs to a member"))
		Expect(gateway.client.Create(ctx, taken)).To(Succeed())
		Expect(user.Delete(ctx, taken)).To(beForbidden("goes with it"))
		Expect(gateway.client.Delete(ctx, taken)).To(Succeed())
		Eventually(func() error { return masters.Get(ctx, client.ObjectKeyFromObject(taken), taken) }).Should(Satisfy(apierrors.IsNotFound), "it is deleted like any other namespace")
	})

	It("is a label or annotation with the prefix fleetgate.io", func(ctx SpecContext) {
		user := everyUser(ctx, "keys-"+newNamespace(ctx))
		const key = "fleetgate.io/cluster-uid"
		marked := memberCluster("marked-" + newNamespace(ctx))
		marked.Annotations = map[string]string{key: "u"}
		Eventually(func() error { return user.Create(ctx, marked.DeepCopy(), client.DryRunAll) }).Should(beForbidden("are written by the hub"))
		Expect(gateway.client.Create(ctx, marked)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, marked)).To(Succeed()) })
		Expect(change(ctx, user, marked, func(m *clusterv1beta1.MemberCluster) { m.Annotations[key] = "v" })).To(beForbidden("are written by the hub"))
		Expect(change(ctx, user, marked, func(m *clusterv1beta1.MemberCluster) { m.Labels = map[string]string{"fleetgate.io/x": "v"} })).To(beForbidden("are written by the hub"))
		Expect(change(ctx, user, marked, func(m *clusterv1beta1.MemberCluster) { m.Annotations = nil })).To(beForbidden("are removed by the hub"))
		Expect(change(ctx, user, marked, func(m *clusterv1beta1.MemberCluster) {
			m.Labels, m.Annotations["note"] = map[string]string{"stage": "prod"}, "x"
		})).To(Succeed())
	})

	DescribeTable("cannot be reached with the gateway's own account", func(ctx SpecContext, text string, write func(SpecContext, client.Client, string) error) {
		elsewhere := newNamespace(ctx)
		Expect(masters.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "admin"}})).To(Succeed())
		Expect(masters.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "token-" + uid}})).To(Succeed())
		Expect(masters.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "b"}})).To(Succeed())
		Expect(write(ctx, gateway.client, elsewhere)).To(beForbidden(text))
	},
		Entry("requesting a token of a user's account", "requests tokens of members' accounts", func(ctx SpecContext, c client.Client, ns string) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "admin"}}, &authenticationv1.TokenRequest{})
		}),
		Entry("writing a token Secret of a user's account", "writes token Secrets of registration tokens' accounts only", func(ctx SpecContext, c client.Client, ns string) error {
			return c.Create(ctx, &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: "admin"}}})
		}),
		Entry("binding a role to a user's account", "binds the Role of a registration token", func(ctx SpecContext, c client.Client, ns string) error {
			return c.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "b"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "admin"}}})
		}),
		Entry("binding a ClusterRole", "binds the ClusterRoles of members, and Argo CD's to its account, only", func(ctx SpecContext, c client.Client, _ string) error {
			return c.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleetgate-placeable"}})
		}),
		Entry("binding Argo CD's role to another account", "binds the ClusterRoles of members, and Argo CD's to its account, only", func(ctx SpecContext, c client.Client, ns string) error {
			makeRoleOfArgoCD(ctx)
			return c.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: argocd.Account},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: argocd.Account},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: argocd.Account}}})
		}),
		Entry("requesting a token of an account with the name of Argo CD's", "requests tokens of members' accounts", func(ctx SpecContext, c client.Client, ns string) error {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: argocd.Account}}
			Expect(masters.Create(ctx, account)).To(Succeed())
			return c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
		}),
		Entry("requesting a token in kube-system", "requests tokens of members' accounts", func(ctx SpecContext, c client.Client, _ string) error {
			Expect(masters.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "token-" + uid}})).To(Succeed())
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "token-" + uid}}, &authenticationv1.TokenRequest{})
		}),
	)

	// The policy once rejected what the Argo CD controller writes.
	It("does not include Argo CD's account", func(ctx SpecContext) {
		Expect(masters.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}})).To(Succeed())
		makeRoleOfArgoCD(ctx)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: argocd.Account}}
		for _, object := range []client.Object{
			account,
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: argocd.Account},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: argocd.Account},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "argocd", Name: argocd.Account}}},
		} {
			Expect(gateway.client.Create(ctx, object)).To(Succeed(), "%T", object)
		}
		Expect(gateway.client.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})).To(Succeed())
	})

	It("does not include registrations", func(ctx SpecContext) {
		namespace, account := newNamespace(ctx), "new-token-"+uid
		objectMeta := metav1.ObjectMeta{Namespace: namespace, Name: account}
		for _, object := range []client.Object{
			&corev1.ServiceAccount{ObjectMeta: objectMeta},
			&rbacv1.Role{ObjectMeta: objectMeta},
			&rbacv1.RoleBinding{ObjectMeta: objectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}}},
			&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: account + "-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new-token"}},
		} {
			Expect(gateway.client.Create(ctx, object)).To(Succeed(), "%T", object)
		}
		Expect(gateway.client.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: objectMeta}, &authenticationv1.TokenRequest{})).To(Succeed())
	})
})

var _ = Describe("A MemberCluster", func() {
	with := func(alter func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
		member := memberCluster("")
		member.GenerateName = "member-"
		alter(member)
		return member
	}
	tainted := func(taints ...clusterv1beta1.Taint) *clusterv1beta1.MemberCluster {
		for i := range taints {
			taints[i].Effect = corev1.TaintEffectNoSchedule
		}
		return with(func(m *clusterv1beta1.MemberCluster) { m.Spec.Taints = taints })
	}
	identified := func(identity rbacv1.Subject) *clusterv1beta1.MemberCluster {
		return with(func(m *clusterv1beta1.MemberCluster) { m.Spec.Identity = identity })
	}

	DescribeTable("is rejected by its schema, without a gateway", func(ctx SpecContext, member *clusterv1beta1.MemberCluster, field, text string) {
		Expect(masters.Create(ctx, member)).To(beInvalid(field, text))
	},
		Entry("with a taint with an invalid key", tainted(clusterv1beta1.Taint{Key: "not a key"}), "spec.taints[0].key", "name part must consist of"),
		Entry("with a taint whose key is too long", tainted(clusterv1beta1.Taint{Key: strings.Repeat("k", 64)}), "spec.taints[0].key", "name part must consist of"),
		Entry("with a taint without a key", tainted(clusterv1beta1.Taint{}), "spec.taints[0].key", "name part must consist of"),
		Entry("with a taint with an invalid value", tainted(clusterv1beta1.Taint{Key: "k", Value: "-v"}), "spec.taints[0].value", "a valid label must be an empty string or consist of"),
		Entry("with a duplicate taint", tainted(clusterv1beta1.Taint{Key: "k", Value: "a"}, clusterv1beta1.Taint{Key: "k", Value: "b"}), "spec.taints", "taints must be unique"),
		Entry("with system:authenticated as identity", identified(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:authenticated"}), "spec.identity", "others are in it"),
		Entry("with a Kubernetes component as identity", identified(rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:kube-scheduler"}), "spec.identity", "it is Kubernetes' own"),
		Entry("with another member's account as identity",
			identified(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: memberNamespace, Name: clusterv1beta1.AgentAccount}),
			"<nil>", "the account of another member cannot be this member's identity"),
	)

	It("accepts taints with label syntax, and identities of every kind", func(ctx SpecContext) {
		for _, member := range []*clusterv1beta1.MemberCluster{
			tainted(clusterv1beta1.Taint{Key: "example.org/key", Value: "v"}, clusterv1beta1.Taint{Key: "k_e.Y"}),
			identified(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "fleet-system", Name: "hub-access"}),
			identified(rbacv1.Subject{Kind: rbacv1.UserKind, Name: "system:serviceaccount:fleet-system:hub-access"}),
			identified(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "team-a"}),
		} {
			Expect(masters.Create(ctx, member)).To(Succeed())
			Expect(masters.Delete(ctx, member)).To(Succeed())
		}
	})
})

var _ = Describe("Break-glass access", func() {
	bad := func() *placementv1beta1.ClusterResourcePlacement {
		placement := clusterPlacement(selecting("v1", "Nothing", "n"))
		placement.Annotations = map[string]string{webhook.AnnotationBypass: "the gateway is wrong about this kind"}
		return placement
	}

	It("needs the verb bypass and the annotation", func(ctx SpecContext) {
		user := everyUser(ctx, "breaker-"+newNamespace(ctx))
		Expect(user.Create(ctx, bad())).To(beInvalid("spec.resourceSelectors[0]", "failed to get GVR of the selector"), "only the annotation")
		without := bad()
		without.Annotations = nil
		Expect(masters.Create(ctx, without)).To(beInvalid("spec.resourceSelectors[0]", "failed to get GVR of the selector"), "only the right")
		both := bad()
		both.Annotations[webhook.AnnotationBypass] = "so that it is in the log"
		Expect(masters.Create(ctx, both)).To(Succeed())
		Eventually(os.ReadFile).WithArguments(filepath.Join(hub.Dir, "audit.log")).Should(
			MatchRegexp(`"fleetgate-bypassed-rules/bypass":"[^"]+: so that it is in the log"`))
	})

	It("works while the gateway is down", Serial, func(ctx SpecContext) {
		gateway.stop()
		DeferCleanup(func(ctx context.Context) {
			gateway.start()
			waitUntilAdmissionIsOn(ctx)
		})
		Expect(masters.Create(ctx, bad())).To(Succeed())
		Expect(masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")))).To(MatchError(ContainSubstring("failed calling webhook")))
	})
})

var _ = Describe("While the gateway is down", Serial, func() {
	It("fleetgate blocks no namespace, Lease, foreign object or start of the gateway", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		gateway.stop()
		DeferCleanup(func(ctx context.Context) {
			if gateway.cancel == nil {
				gateway.start()
				waitUntilAdmissionIsOn(ctx)
			}
		})
		Expect(masters.Create(ctx, leaseIn(namespace))).To(Succeed())
		Expect(masters.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}})).To(Succeed())
		member := memberCluster("while-down")
		Expect(gateway.client.Create(ctx, member)).To(Succeed())
		Expect(gateway.client.Delete(ctx, member)).To(Succeed())
		gone := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		Expect(masters.Delete(ctx, gone)).To(Succeed())
		// To delete a namespace, Kubernetes lists its objects in every API, also in one that does
		// not answer (docs/how-to/runbook.md). No rule of fleetgate rejects the deletion.
		Eventually(func(g Gomega) {
			if err := masters.Get(ctx, client.ObjectKeyFromObject(gone), gone); apierrors.IsNotFound(err) {
				return
			}
			g.Expect(gone.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.NamespaceDeletionDiscoveryFailure), HaveField("Status", corev1.ConditionTrue),
				HaveField("Message", ContainSubstring(intake.GroupVersion.Group)))))
		}).Should(Succeed())

		By("deleting the webhook certificate's Secret as well")
		Expect(masters.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: "gateway-serving-ca"}})).To(Succeed())
		gateway.start()
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		Eventually(func() error { return masters.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop"))) }).Should(Succeed())
		// The namespace controller retries within a minute, also when it learns late that an API is
		// served again.
		Eventually(func() error { return masters.Get(ctx, client.ObjectKeyFromObject(gone), gone) }).WithTimeout(3 * time.Minute).Should(Satisfy(apierrors.IsNotFound))
	})
})

// makeRoleOfArgoCD creates the role that can be bound only if it exists.
func makeRoleOfArgoCD(ctx SpecContext) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: argocd.Account}}
	Expect(client.IgnoreAlreadyExists(masters.Create(ctx, role))).To(Succeed())
}
