// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
)

// administratorBinding is an object that its author cannot create. The member's agent would apply
// it if a snapshot or a Work contained it.
func administratorBinding(user string) runtime.RawExtension {
	return runtime.RawExtension{Raw: []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"mine"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},` +
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"` + user + `"}]}`)}
}

// deliveriesIn returns one object of each kind that only the gateway writes. Namespaced ones are in
// this namespace.
func deliveriesIn(namespace, user string) map[string]client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "by-hand"}
	whole := metav1.ObjectMeta{Name: "by-hand-" + namespace}
	contents := placementv1beta1.ResourceSnapshotSpec{SelectedResources: []placementv1beta1.Manifest{{RawExtension: administratorBinding(user)}}}
	target := placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingBound, TargetCluster: memberName, ResourceSnapshotName: "by-hand"}
	policy := placementv1beta1.SchedulingPolicySnapshotSpec{PolicyHash: []byte("h")}
	return map[string]client.Object{
		"clusterresourcesnapshots":         &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: whole, Spec: contents},
		"resourcesnapshots":                &placementv1beta1.ResourceSnapshot{ObjectMeta: meta, Spec: contents},
		"clusterschedulingpolicysnapshots": &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: whole, Spec: policy},
		"schedulingpolicysnapshots":        &placementv1beta1.SchedulingPolicySnapshot{ObjectMeta: meta, Spec: policy},
		"clusterresourceoverridesnapshots": &placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: whole, Spec: placementv1beta1.ClusterResourceOverrideSnapshotSpec{
			OverrideSpec: clusterOverride().Spec, OverrideHash: []byte("h"),
		}},
		"resourceoverridesnapshots": &placementv1beta1.ResourceOverrideSnapshot{ObjectMeta: meta, Spec: placementv1beta1.ResourceOverrideSnapshotSpec{
			OverrideSpec: resourceOverride().Spec, OverrideHash: []byte("h"),
		}},
		"clusterresourcebindings": &placementv1beta1.ClusterResourceBinding{ObjectMeta: whole, Spec: target},
		"resourcebindings":        &placementv1beta1.ResourceBinding{ObjectMeta: meta, Spec: target},
		"works": &placementv1beta1.Work{ObjectMeta: meta, Spec: placementv1beta1.WorkSpec{Workload: placementv1beta1.WorkloadTemplate{
			Manifests: []placementv1beta1.Manifest{{RawExtension: administratorBinding(user)}},
		}}},
	}
}

// everythingOf grants the smallest right that made this attack possible: every verb on the group,
// and for namespaced kinds in one namespace only.
func everythingOf(ctx SpecContext, user, namespace string) client.Client {
	GinkgoHelper()
	config, err := hub.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "placements"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	Expect(masters.Create(ctx, role)).To(Succeed())
	Expect(masters.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "placements"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
	return clientFor(config)
}

var _ = Describe("A kind that only the gateway writes", func() {
	const refusal = "the gateway makes them of what is placed"

	It("cannot be written by a user with all verbs on placements in a namespace", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		name := "author-" + namespace
		user := everythingOf(ctx, name, namespace)
		Eventually(func() error {
			return user.List(ctx, &placementv1beta1.WorkList{}, client.InNamespace(namespace))
		}).Should(Succeed(), "the user has the right")
		bindClusterRole(ctx, "cluster-wide-"+namespace, name, rbacv1.PolicyRule{
			APIGroups: []string{placementv1beta1.GroupName}, Verbs: []string{"*"},
			Resources: []string{"clusterresourcesnapshots", "clusterschedulingpolicysnapshots", "clusterresourceoverridesnapshots", "clusterresourcebindings"},
		})
		Eventually(func() error { return user.List(ctx, &placementv1beta1.ClusterResourceBindingList{}) }).Should(Succeed())
		for resource, object := range deliveriesIn(namespace, name) {
			Expect(user.Create(ctx, object.DeepCopyObject().(client.Object))).To(beForbidden(name+" cannot write "+resource+": "+refusal), resource)
			Expect(gateway.client.Create(ctx, object)).To(Succeed(), resource)
		}
	})

	It("can be labelled, reported on and deleted by others, but not changed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		user := everythingOf(ctx, "owner-"+namespace, namespace)
		binding := deliveriesIn(namespace, "x")["resourcebindings"].(*placementv1beta1.ResourceBinding)
		Expect(gateway.client.Create(ctx, binding)).To(Succeed())
		Eventually(func() error {
			return change(ctx, user, binding, func(b *placementv1beta1.ResourceBinding) {
				b.Labels, b.Finalizers = map[string]string{"team": "a"}, []string{"example.org/wait"}
			})
		}).Should(Succeed())
		Expect(change(ctx, user, binding, func(b *placementv1beta1.ResourceBinding) { b.Spec.ResourceSnapshotName = "another" })).
			To(beForbidden(refusal))
		Expect(change(ctx, user, binding, func(b *placementv1beta1.ResourceBinding) {
			b.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "somebody-elses"}
		})).To(beForbidden(refusal), "the member of this binding would get the other snapshot")
		Expect(user.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
		binding.Status.Conditions = []metav1.Condition{{
			Type: "Applied", Status: metav1.ConditionTrue, Reason: "Looked", LastTransitionTime: metav1.NewTime(time.Now()),
		}}
		Expect(user.Status().Update(ctx, binding)).To(Succeed())
		Expect(user.Delete(ctx, binding)).To(Succeed())
		Expect(change(ctx, user, binding, func(b *placementv1beta1.ResourceBinding) { b.Finalizers = nil })).To(Succeed())
		Eventually(func() error { return masters.Get(ctx, client.ObjectKeyFromObject(binding), binding) }).Should(Satisfy(apierrors.IsNotFound))
	})

	It("is the status of update runs, even if a user has all verbs on placements", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		user := everythingOf(ctx, "runner-"+namespace, namespace)
		run := &placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "run"}}
		run.Spec.PlacementName, run.Spec.StagedRolloutStrategyName = "p", "s"
		Eventually(func() error { return user.Create(ctx, run) }).Should(Succeed())
		run.Status.ResourceSnapshotIndexUsed = "1"
		Expect(user.Status().Update(ctx, run.DeepCopy())).To(beForbidden("the gateway carries out a run by its status"))
		Expect(gateway.client.Status().Update(ctx, run)).To(Succeed())
	})

	It("can be restored from a backup by an account with the verb bypass", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		name := "restore-" + namespace
		user := everythingOf(ctx, name, namespace)
		work := func() error { return user.Create(ctx, deliveriesIn(namespace, name)["works"]) }
		Eventually(work).Should(beForbidden(refusal))
		bindClusterRole(ctx, "restore-"+namespace, name, rbacv1.PolicyRule{
			APIGroups: []string{webhook.BypassGroup}, Resources: []string{webhook.BypassDeliveries}, Verbs: []string{webhook.BypassVerb},
		})
		Eventually(work).Should(Succeed())

		By("restoring as an administrator with rights to *")
		administrator := everythingOf(ctx, "administrator-"+namespace, newNamespace(ctx))
		bindClusterRole(ctx, "administrator-"+namespace, "administrator-"+namespace, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
		Eventually(func() error {
			return administrator.Create(ctx, deliveriesIn(namespace, name)["resourcebindings"])
		}).Should(Succeed())
	})

	It("is protected while the gateway is down, and from members' agents", Serial, func(ctx SpecContext) {
		gateway.stop()
		DeferCleanup(func() { gateway.start() })
		grant(ctx, rbacv1.PolicyRule{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"works", "works/status"}, Verbs: []string{"*"}})
		member := newMemberIdentity(ctx)
		Eventually(func() error {
			return member.Create(ctx, deliveriesIn(memberNamespace, clusterv1beta1.AgentUsername(memberName))["works"])
		}).Should(beForbidden(refusal))
	})
})
