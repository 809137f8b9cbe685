// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// ordered creates a ManifestWork that its agent has started.
func ordered(ctx context.Context, cluster, name, priority string) {
	GinkgoHelper()
	work := &workv1.ManifestWork{ObjectMeta: build.In(cluster, name)}
	work.Finalizers = []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}
	if priority != "" {
		work.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotation: priority}
	}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: expect.Raw(build.ConfigMapText("default", name))[0]}}
	expect.Created(ctx, hubClient, work)
}

// going are the names of the works that are being deleted.
func going(ctx context.Context, cluster string) ([]string, error) {
	works := &workv1.ManifestWorkList{}
	err := hubClient.List(ctx, works, client.InNamespace(cluster))
	names := []string{}
	for _, work := range works.Items {
		if work.DeletionTimestamp != nil {
			names = append(names, work.Name)
		}
	}
	return names, err
}

// cleanUp removes a work's finalizer, like an agent after its cleanup.
func (a *agent) cleanUp(ctx context.Context, name string) {
	GinkgoHelper()
	own, work := a.hub(), &workv1.ManifestWork{}
	Eventually(func(g Gomega) {
		g.Expect(own.Get(ctx, client.ObjectKey{Namespace: a.cluster, Name: name}, work)).To(Succeed())
		work.Finalizers = nil
		g.Expect(own.Update(ctx, work)).To(Succeed())
	}).Should(Succeed())
}

var _ = Describe("A cluster that is deleted", func() {
	It("is deleted when its agent has cleaned up, in the order of priorities", func(ctx SpecContext) {
		const name = "leaves"
		a := join(ctx, name)
		ordered(ctx, name, "first", "")
		ordered(ctx, name, "second", "10")
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		Expect(hubClient.Delete(ctx, cluster)).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("Deleting", "False/ResourceRemaining"))
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"first"}))
		Consistently(going).WithArguments(ctx, name).Should(Equal([]string{"first"}))

		By("having only the rights that it needs for that")
		own := a.hub()
		Eventually(func() error { return own.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}) }).Should(Satisfy(apierrors.IsForbidden))
		a.cleanUp(ctx, "first")
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"second"}))
		a.cleanUp(ctx, "second")
		Eventually(expect.Gone(ctx, hubClient, cluster)).Should(BeTrue())
		for _, object := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + name)},
			&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(rolePrefix + name)},
			&rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":registration")},
			&rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":work")},
			&coordinationv1.Lease{ObjectMeta: build.In(name, "managed-cluster-lease")},
		} {
			Eventually(expect.Gone(ctx, hubClient, object)).Should(BeTrue())
		}
		By("keeping its namespace, and objects of users in it")
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})).To(Succeed())
		join(ctx, name)
	})

	It("is deleted after its add-ons and then its works", func(ctx SpecContext) {
		const name = "with-add-ons"
		a := join(ctx, name)
		ordered(ctx, name, "work", "")
		addOn := addOnOf(name, "held")
		addOn.SetFinalizers([]string{"example.com/held"})
		expect.Created(ctx, hubClient, addOn)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		Expect(hubClient.Delete(ctx, cluster)).To(Succeed())
		Eventually(func() (*metav1.Time, error) {
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
			return addOn.GetDeletionTimestamp(), err
		}).ShouldNot(BeNil())
		Consistently(going).WithArguments(ctx, name).Should(BeEmpty())
		Expect(hubClient.Patch(ctx, addOn, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"work"}))
		a.cleanUp(ctx, "work")
		Eventually(expect.Gone(ctx, hubClient, cluster)).Should(BeTrue())
	})

	It("is deleted without its agent when an administrator declares it gone", func(ctx SpecContext) {
		const name = "gone"
		join(ctx, name)
		ordered(ctx, name, "stays", "")
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		Expect(hubClient.Delete(ctx, cluster)).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("Deleting", "False/ResourceRemaining"))
		left, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (string, error) {
			conditions, err := conditionsOf(ctx, name)
			return expect.Condition(conditions, "Deleting").Message, err
		}).Should(ContainSubstring(managedcluster.ForceDeleteAnnotation))
		Expect(left.Finalizers).NotTo(BeEmpty())
		Expect(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"annotations":{"`+managedcluster.ForceDeleteAnnotation+`":"true"}}}`))).To(Succeed())
		Eventually(expect.Gone(ctx, hubClient, cluster)).Should(BeTrue())
		Expect(going(ctx, name)).To(BeEmpty())
	})

	It("leaves no rights and no tasks when somebody removes its finalizers", func(ctx SpecContext) {
		const name = "torn-out"
		a := join(ctx, name)
		ordered(ctx, name, "left", "")
		tearOut(ctx, name)
		for _, object := range []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: build.Named(rolePrefix + name)},
			&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(rolePrefix + name)},
			&rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":registration")},
		} {
			Eventually(expect.Gone(ctx, hubClient, object)).Should(BeTrue())
		}
		By("its agent cleaning up, with its remaining right")
		Eventually(going).WithArguments(ctx, name).Should(Equal([]string{"left"}))
		a.cleanUp(ctx, "left")
		Eventually(expect.Gone(ctx, hubClient, &rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":work")})).Should(BeTrue())
	})

	It("works with its agent's certificate when somebody removes its finalizers and re-creates it", func(ctx SpecContext) {
		const name = "restored-whole"
		a := join(ctx, name)
		ordered(ctx, name, "kept", "")
		tearOut(ctx, name)
		again := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name), Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60}}
		Expect(hubClient.Create(ctx, again)).To(Succeed())
		a.connected(ctx)
		a.renewLease(ctx, time.Now())
		a.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
		Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
	})

	It("shows owners of other finalizers that the cleanup is complete", func(ctx SpecContext) {
		const name = "held-by-others"
		join(ctx, name)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		Eventually(func() error {
			return hubClient.Patch(ctx, cluster, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/held"}]`)))
		}).Should(Succeed())
		Expect(hubClient.Delete(ctx, cluster)).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("Deleting", "True/NoResource"))
		Eventually(func() ([]string, error) { cluster, err := clusterOf(ctx, name); return cluster.Finalizers, err }).Should(Equal([]string{"example.com/held"}))
		Expect(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
	})

	It("is deleted at once if it was never accepted", func(ctx SpecContext) {
		const name = "never"
		newAgent(ctx, name).register(ctx)
		Eventually(taintsOf).WithArguments(ctx, name).ShouldNot(BeEmpty())
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
	})

	It("loses its rights also if it is denied while its namespace is being deleted", func(ctx SpecContext) {
		const name = "denied-late"
		a := join(ctx, name)
		ordered(ctx, name, "holds", "")
		Expect(hubClient.Delete(ctx, build.Namespace(name))).To(Succeed())
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/NamespaceTaken"))
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		own := a.hub()
		Eventually(func() error { return own.Create(ctx, a.request()) }).Should(Satisfy(apierrors.IsForbidden))
	})

	It("gets all rights again when it is accepted again before its works are deleted", func(ctx SpecContext) {
		const name = "accepted-again"
		a := join(ctx, name)
		ordered(ctx, name, "work", "")
		deny(ctx, name)
		binding := &rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":work")}
		ends := func() (*metav1.Time, error) {
			live := &rbacv1.RoleBinding{}
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(binding), live)
			return live.DeletionTimestamp, err
		}
		Eventually(ends).ShouldNot(BeNil())
		accept(ctx, name)
		Eventually(ends).Should(BeNil())
		a.connected(ctx)
	})

	It("keeps the right to clean up after an earlier denial", func(ctx SpecContext) {
		const name = "denied-works"
		a := join(ctx, name)
		ordered(ctx, name, "work", "")
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		binding := &rbacv1.RoleBinding{ObjectMeta: build.In(name, rolePrefix+name+":work")}
		Eventually(func() (*metav1.Time, error) {
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(binding), binding)
			return binding.DeletionTimestamp, err
		}).ShouldNot(BeNil())
		Expect(hubClient.Delete(ctx, &workv1.ManifestWork{ObjectMeta: build.In(name, "work")})).To(Succeed())
		a.cleanUp(ctx, "work")
		Eventually(expect.Gone(ctx, hubClient, binding)).Should(BeTrue())
	})
})

// tearOut deletes a ManagedCluster and removes all its finalizers.
func tearOut(ctx context.Context, name string) {
	GinkgoHelper()
	cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
	Expect(hubClient.Delete(ctx, cluster)).To(Succeed())
	Eventually(func() error {
		return client.IgnoreNotFound(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"finalizers":null}}`)))
	}).Should(Succeed())
	Eventually(expect.Gone(ctx, hubClient, cluster)).Should(BeTrue())
}
