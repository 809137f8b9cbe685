// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/managednamespace"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A member whose agent has a foreign identity", Ordered, func() {
	const name, set, identity = "foreign", "of-foreign", "cloud-identity"
	var (
		config *rest.Config
		own    client.Client
	)

	// cluster is the ManagedCluster as its agent sees it.
	cluster := func(ctx SpecContext) *clusterv1.ManagedCluster {
		GinkgoHelper()
		found := &clusterv1.ManagedCluster{}
		Expect(own.Get(ctx, client.ObjectKey{Name: name}, found)).To(Succeed())
		return found
	}
	report := func(ctx SpecContext, change func(*clusterv1.ManagedClusterStatus)) error {
		GinkgoHelper()
		said := cluster(ctx)
		base := said.DeepCopy()
		change(&said.Status)
		return own.Status().Patch(ctx, said, client.MergeFrom(base))
	}
	comesAs := func(ctx SpecContext, user string) {
		GinkgoHelper()
		member := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(name)}
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"spec":{"identity":{"kind":"User","name":"`+user+`","namespace":null}}}`))).To(Succeed())
	}
	mayReport := func(ctx SpecContext) func() error {
		return func() error {
			return own.Status().Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}, expect.MergePatch(`{}`))
		}
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		config, err = hub.ConfigFor(identity)
		Expect(err).NotTo(HaveOccurred())
		own = expect.Client(build.Unlimited(config), kinds())
		memberOfSets(ctx, name)
		memberOfSets(ctx, "foreign-1")
		want(ctx, set, name, "ns-of-foreign")
		Expect(own.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{})).To(Satisfy(apierrors.IsForbidden))
		comesAs(ctx, identity)
		Eventually(mayReport(ctx)).Should(Succeed())
	})

	It("sees its ManagedCluster, and reports the status of managed namespaces", func(ctx SpecContext) {
		agent := makesNamespaces(onMember(ctx, "agent-foreign", managednamespace.MemberRules()...), name)
		Eventually(became).WithArguments(ctx, name).Should(HaveKey(set + "/ns-of-foreign"))
		running := runningWith(config, agent, name)
		DeferCleanup(running.Stop)
		Eventually(became).WithArguments(ctx, name).Should(HaveKeyWithValue(set+"/ns-of-foreign", saying("True/NamespaceApplied")))
	})

	It("is shown with its identity, and costs no write without a change", func(ctx SpecContext) {
		shown := cluster(ctx)
		Expect(shown.Annotations).To(HaveKeyWithValue(membermirror.IdentityAnnotation, identity))
		Consistently(func() string { return cluster(ctx).ResourceVersion }).Should(Equal(shown.ResourceVersion))
	})

	It("cannot write the rest of the status, which the hub writes", func(ctx SpecContext) {
		for what, change := range map[string]func(*clusterv1.ManagedClusterStatus){
			"a condition": func(s *clusterv1.ManagedClusterStatus) {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: "Good", Status: metav1.ConditionTrue, Reason: "Said", LastTransitionTime: metav1.Now()})
			},
			"a claim": func(s *clusterv1.ManagedClusterStatus) {
				s.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "tier", Value: "gold"}}
			},
			"its capacity": func(s *clusterv1.ManagedClusterStatus) {
				s.Capacity = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
			},
			"its version": func(s *clusterv1.ManagedClusterStatus) { s.Version.Kubernetes = "v9" },
			"a namespace that no set wants": func(s *clusterv1.ManagedClusterStatus) {
				s.ManagedNamespaces = append(s.ManagedNamespaces, clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "other"})
			},
		} {
			Expect(report(ctx, change)).To(MatchError(Or(ContainSubstring("the hub says how a member is"), ContainSubstring("Invalid value"))), what)
		}
	})

	It("cannot write a label, annotation, taint or address of its own cluster, and cannot accept it", func(ctx SpecContext) {
		patches := []string{
			`{"metadata":{"labels":{"env":"mine"}}}`, `{"metadata":{"annotations":{"fleetgate.io/member-identity":null}}}`, `{"metadata":{"finalizers":null}}`,
			`{"spec":{"taints":[{"key":"a","effect":"NoSelect"}]}}`, `{"spec":{"hubAcceptsClient":false}}`, `{"spec":{"leaseDurationSeconds":9}}`,
		}
		object := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		for _, patch := range append(patches, `{"spec":{"managedClusterClientConfigs":[{"url":"https://other"}]}}`) {
			Expect(own.Patch(ctx, object, expect.MergePatch(patch))).To(Satisfy(apierrors.IsForbidden), patch)
		}
		Expect(own.Delete(ctx, object)).To(Satisfy(apierrors.IsForbidden))

		By("having been granted the right")
		grantOnMember(ctx, identity, rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "patch"}})
		Eventually(func() error { return own.Patch(ctx, object, expect.MergePatch(`{"spec":{}}`)) }).Should(Succeed())
		for _, patch := range patches {
			Expect(own.Patch(ctx, object, expect.MergePatch(patch))).To(MatchError(ContainSubstring("fleetgate-klusterlets")), patch)
		}
	})

	It("cannot report for another cluster, and has no right in any namespace", func(ctx SpecContext) {
		other := &clusterv1.ManagedCluster{ObjectMeta: build.Named("foreign-1")}
		Expect(own.Status().Patch(ctx, other, expect.MergePatch(`{"status":{"version":{"kubernetes":"v9"}}}`))).To(Satisfy(apierrors.IsForbidden))
		Expect(own.List(ctx, &clusterv1.ManagedClusterList{})).To(Satisfy(apierrors.IsForbidden))
		for _, namespace := range []string{name, "foreign-1"} {
			Expect(own.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace(namespace))).To(Satisfy(apierrors.IsForbidden))
		}
	})

	It("does not get its identity from annotations of the ManagedCluster", func(ctx SpecContext) {
		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("foreign-1")},
			expect.MergePatch(`{"metadata":{"annotations":{"fleetgate.io/member-identity":"`+identity+`"}}}`))).To(Succeed())
		Eventually(func() (map[string]string, error) {
			found, err := clusterOf(ctx, "foreign-1")
			return found.Annotations, err
		}).ShouldNot(HaveKey(membermirror.IdentityAnnotation))
		Consistently(func() error {
			return hubClient.Get(ctx, client.ObjectKey{Name: "fleetgate-member-foreign-1:report"}, &rbacv1.ClusterRoleBinding{})
		}).Should(Satisfy(apierrors.IsNotFound))
	})

	It("loses its right when it is denied, when its identity changes, and when the cluster is deleted", func(ctx SpecContext) {
		deny(ctx, name)
		Eventually(mayReport(ctx)).Should(Satisfy(apierrors.IsForbidden))
		accept(ctx, name)
		Eventually(mayReport(ctx)).Should(Succeed())
		comesAs(ctx, "another-identity")
		Eventually(mayReport(ctx)).Should(Satisfy(apierrors.IsForbidden))
		comesAs(ctx, identity)
		Eventually(mayReport(ctx)).Should(Succeed())
		expect.Removed(ctx, hubClient, &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(name)})
		for _, left := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
			left.SetName("fleetgate-member-foreign:report")
			Eventually(expect.Gone(ctx, hubClient, left)).Should(BeTrue())
		}
	})
})
