// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/cluster/agent/managednamespace"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var (
	thisHub  = strings.Repeat("1", 64)
	otherHub = strings.Repeat("2", 64)
)

// onMember is an account on the member with only the agent's rights for these namespaces, or without
// any. This hub is the member, too.
func onMember(ctx context.Context, user string, rules ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	if len(rules) > 0 {
		grantOnMember(ctx, user, rules...)
	}
	config, err := hub.ConfigFor(user)
	Expect(err).NotTo(HaveOccurred())
	return expect.Client(build.Unlimited(config), kinds())
}

func grantOnMember(ctx context.Context, user string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	expect.Created(ctx, hubClient,
		&rbacv1.ClusterRole{ObjectMeta: build.Named(user), Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: build.Named(user),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
}

// makesNamespaces is the part of the member's agent that creates namespaces. On the hub it has the
// rights of a member's account.
func makesNamespaces(member client.Client, cluster string) *managednamespace.Reconciler {
	GinkgoHelper()
	return &managednamespace.Reconciler{
		Hub: expect.Client(build.Unlimited(accountOf(cluster)), kinds()), Member: member, HubHash: thisHub, House: []string{"house"},
	}
}

// running runs it like an agent, which sees one ManagedCluster, with the member's account.
func running(r *managednamespace.Reconciler, cluster string) *expect.Running {
	GinkgoHelper()
	return runningWith(accountOf(cluster), r, cluster)
}

func runningWith(account *rest.Config, r *managednamespace.Reconciler, cluster string) *expect.Running {
	GinkgoHelper()
	again := true
	return expect.Started(func(context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(account), ctrl.Options{
			Scheme: kinds(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &again},
			Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
				&clusterv1.ManagedCluster{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, cluster)},
			}},
		})
		if err != nil {
			return nil, err
		}
		r.Hub = mgr.GetClient()
		return mgr.Start, r.SetupWithManager(mgr)
	})
}

// became are the conditions of a cluster's managed namespaces, by set and name.
func became(ctx context.Context, cluster string) (map[string][]metav1.Condition, error) {
	found, err := clusterOf(ctx, cluster)
	all := map[string][]metav1.Condition{}
	for _, one := range found.Status.ManagedNamespaces {
		all[one.ClusterSet+"/"+one.Name] = one.Conditions
	}
	return all, err
}

func saying(text string) gomegatypes.GomegaMatcher {
	return expect.HaveCondition("NamespaceAvailable", text)
}

// labelsOf are the labels of a namespace that identify the hubs that want it.
func labelsOf(ctx context.Context, namespace string) (map[string]string, error) {
	found := &corev1.Namespace{}
	err := hubClient.Get(ctx, client.ObjectKey{Name: namespace}, found)
	all := map[string]string{}
	for key, value := range found.Labels {
		if hash, is := strings.CutPrefix(key, "clusterset.open-cluster-management.io/"); is {
			all[hash] = value
		}
	}
	return all, err
}

// want makes a set want namespaces on its clusters, which are one member.
func want(ctx context.Context, set, member string, namespaces ...string) *clusterv1beta2.ManagedClusterSet {
	GinkgoHelper()
	wanting := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(set)}
	wanting.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{
		SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"is": member}},
	}
	for _, name := range namespaces {
		wanting.Spec.ManagedNamespaces = append(wanting.Spec.ManagedNamespaces, clusterv1beta2.ManagedNamespaceConfig{Name: name})
	}
	expect.CreatedForSpec(ctx, hubClient, wanting)
	return wanting
}

// memberOfSets is an accepted member.
func memberOfSets(ctx context.Context, name string) {
	GinkgoHelper()
	member := newMember(ctx, name, true)
	Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"metadata":{"labels":{"is":"`+name+`"}}}`))).To(Succeed())
	Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "True/HubClusterAdminAccepted"))
	Eventually(taintsOf).WithArguments(ctx, name).Should(BeEmpty())
	account := expect.Client(build.Unlimited(accountOf(name)), kinds())
	Eventually(func() error { return account.Get(ctx, client.ObjectKey{Name: name}, &clusterv1.ManagedCluster{}) }).Should(Succeed())
}

var _ = Describe("A member whose sets want namespaces", func() {
	here, there := thisHub[:63], otherHub[:63]

	It("creates them, reports to each set, and keeps them when no set wants them", func(ctx SpecContext) {
		const name = "with-rights"
		memberOfSets(ctx, name)
		expect.Created(ctx, hubClient, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "ns-was-there", Labels: map[string]string{"of": "people", managednamespace.Label(otherHub): "true"},
		}})
		first := want(ctx, "with-rights-1", name, "ns-new", "ns-was-there", "kube-mine", "house")
		second := want(ctx, "with-rights-2", name, "ns-new")
		agent := running(makesNamespaces(onMember(ctx, "agent-with-rights", managednamespace.MemberRules()...), name), name)
		DeferCleanup(agent.Stop)

		Eventually(became).WithArguments(ctx, name).Should(And(
			HaveKeyWithValue("with-rights-1/ns-new", saying("True/NamespaceApplied")),
			HaveKeyWithValue("with-rights-2/ns-new", saying("True/NamespaceApplied")),
			HaveKeyWithValue("with-rights-1/ns-was-there", saying("True/NamespaceApplied")),
			HaveKeyWithValue("with-rights-1/kube-mine", saying("False/NamespaceApplyFailed")),
			HaveKeyWithValue("with-rights-1/house", saying("False/NamespaceApplyFailed")),
		))
		Expect(labelsOf(ctx, "ns-new")).To(Equal(map[string]string{here: "true"}))
		Expect(labelsOf(ctx, "ns-was-there")).To(Equal(map[string]string{here: "true", there: "true"}), "another hub can want it, too")
		for _, refused := range []string{"kube-mine", "house"} {
			Expect(hubClient.Get(ctx, client.ObjectKey{Name: refused}, &corev1.Namespace{})).To(Satisfy(apierrors.IsNotFound))
		}

		By("writing nothing without a change")
		before, err := clusterOf(ctx, name)
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() (string, error) {
			cluster, err := clusterOf(ctx, name)
			return cluster.ResourceVersion, err
		}).Should(Equal(before.ResourceVersion))

		By("removing one from a set, which the other set still wants")
		Expect(hubClient.Patch(ctx, first, expect.MergePatch(`{"spec":{"managedNamespaces":null}}`))).To(Succeed())
		Eventually(labelsOf).WithArguments(ctx, "ns-was-there").Should(Equal(map[string]string{here: "false", there: "true"}))
		Expect(labelsOf(ctx, "ns-new")).To(Equal(map[string]string{here: "true"}))

		By("adding it again")
		Expect(hubClient.Patch(ctx, second, expect.MergePatch(`{"spec":{"managedNamespaces":[{"name":"ns-was-there"}]}}`))).To(Succeed())
		Eventually(labelsOf).WithArguments(ctx, "ns-was-there").Should(Equal(map[string]string{here: "true", there: "true"}))
		Eventually(labelsOf).WithArguments(ctx, "ns-new").Should(Equal(map[string]string{here: "false"}))
		kept := &corev1.Namespace{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: "ns-was-there"}, kept)).To(Succeed())
		Expect(kept.Labels).To(HaveKeyWithValue("of", "people"))

		By("being denied, and accepted again")
		deny(ctx, name)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("HubAcceptedManagedCluster", "False/HubClusterAdminDenied"))
		Expect(hubClient.Patch(ctx, second, expect.MergePatch(`{"spec":{"managedNamespaces":[{"name":"ns-later"}]}}`))).To(Succeed())
		Consistently(func() error { return hubClient.Get(ctx, client.ObjectKey{Name: "ns-later"}, &corev1.Namespace{}) }).Should(Satisfy(apierrors.IsNotFound))
		accept(ctx, name)
		Eventually(became).WithArguments(ctx, name).Should(HaveKeyWithValue("with-rights-2/ns-later", saying("True/NamespaceApplied")))

		By("leaving")
		cluster := &clusterv1.ManagedCluster{}
		Eventually(func() error {
			if err := hubClient.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
				return err
			}
			controllerutil.AddFinalizer(cluster, "example.com/wait")
			return hubClient.Update(ctx, cluster)
		}).Should(Succeed())
		Expect(hubClient.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(name)})).To(Succeed())
		Eventually(labelsOf).WithArguments(ctx, "ns-later").Should(Equal(map[string]string{here: "false"}))
		Expect(labelsOf(ctx, "ns-was-there")).To(Equal(map[string]string{here: "false", there: "true"}))
		Expect(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
	})

	It("re-creates a deleted one, and reports its deletion meanwhile", func(ctx SpecContext) {
		const name = "looks-again"
		memberOfSets(ctx, name)
		want(ctx, name, name, "ns-deleted")
		r := makesNamespaces(onMember(ctx, "agent-looks-again", managednamespace.MemberRules()...), name)
		look := func(g Gomega) []metav1.Condition {
			result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
			g.Expect(err).NotTo(HaveOccurred())
			all, err := became(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(all).To(HaveKey(name + "/ns-deleted"))
			g.Expect(result).To(Equal(ctrl.Result{RequeueAfter: time.Minute}), "it is checked again without an event")
			return all[name+"/ns-deleted"]
		}
		Eventually(look).Should(saying("True/NamespaceApplied"))
		held := &corev1.Namespace{ObjectMeta: build.Named("ns-deleted")}
		Expect(hubClient.Patch(ctx, held, expect.MergePatch(`{"metadata":{"finalizers":["example.com/wait"]}}`))).To(Succeed())
		Expect(hubClient.Delete(ctx, held)).To(Succeed())
		Eventually(look).Should(saying("False/NamespaceApplyFailed"))
		Expect(hubClient.Patch(ctx, held, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
		Eventually(look).Should(saying("True/NamespaceApplied"))
		again := &corev1.Namespace{}
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(held), again)).To(Succeed())
		Expect(again.UID).NotTo(Equal(held.UID))

		By("leaving")
		Expect(r.Release(ctx)).To(Succeed())
		Expect(labelsOf(ctx, "ns-deleted")).To(Equal(map[string]string{here: "false"}))
		Expect(r.Release(ctx)).To(Succeed())
	})

	It("reports a missing right of its agent, and creates them when it is granted", func(ctx SpecContext) {
		const name, user = "without-rights", "agent-without-rights"
		memberOfSets(ctx, name)
		want(ctx, name, name, "ns-forbidden")
		r := makesNamespaces(onMember(ctx, user), name)
		said := func(g Gomega) string {
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
			g.Expect(err).NotTo(HaveOccurred())
			all, err := became(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			condition := expect.Condition(all[name+"/ns-forbidden"], "NamespaceAvailable")
			return condition.Reason + ": " + condition.Message
		}
		Eventually(said).Should(And(HavePrefix("NamespaceApplyFailed: "), ContainSubstring("forbidden"), ContainSubstring("rbac.managedNamespaces=true")))
		Expect(r.Release(ctx)).To(Succeed(), "nothing to release without the right")

		By("granting only list")
		grantOnMember(ctx, user, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}})
		Eventually(said).Should(And(ContainSubstring("cannot patch resource"), ContainSubstring("rbac.managedNamespaces=true")))

		By("granting all rights")
		Expect(hubClient.Patch(ctx, &rbacv1.ClusterRole{ObjectMeta: build.Named(user)},
			expect.MergePatch(`{"rules":[{"apiGroups":[""],"resources":["namespaces"],"verbs":["list","create","patch"]}]}`))).To(Succeed())
		Eventually(said).Should(HavePrefix("NamespaceApplied: "))
	})
})
