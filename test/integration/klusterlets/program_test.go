// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// The program runs on a hub with nothing but the gateway's rights.
var _ = Describe("The gateway's program with --apis=ocm --ocm=registration", Ordered, func() {
	var people client.Client
	// first is the agent of a cluster on the suite's own hub.
	var first *agent
	var suiteHub *env.Cluster

	BeforeAll(func(ctx SpecContext) {
		first = join(ctx, "of-two-hubs")
		before, beforeClient, beforeSet := hub, hubClient, clientset
		other, err := env.Start(ctx, env.Options{Name: "installed"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(other.Stop(ctx)).To(Succeed()) })
		hub, hubClient = other, expect.Client(build.Unlimited(other.Config()), kinds())
		clientset, err = kubernetes.NewForConfig(build.Unlimited(other.Config()))
		Expect(err).NotTo(HaveOccurred())
		suiteHub = before
		DeferCleanup(func() { hub, hubClient, clientset = before, beforeClient, beforeSet })
		giveTheGatewayItsRights(ctx)
		program.Gateway(ctx, hub, "--ocm=registration", "--install", "--external-name=localhost")
		By("answering reviews")
		Eventually(func() error {
			return hubClient.Create(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("kube-x"), Spec: clusterv1.ManagedClusterSpec{
				ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "http://plain"}},
			}}, client.DryRunAll)
		}).Should(Satisfy(apierrors.IsBadRequest))
		config, err := hub.ConfigFor("jane")
		Expect(err).NotTo(HaveOccurred())
		people = expect.Client(build.Unlimited(config), kinds())
		grant(ctx, "clusters-of-jane", rbacv1.PolicyRule{
			APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters", "managedclustersetbindings"}, Verbs: []string{"*"},
		})
	})

	It("lets a cluster join and leave", func(ctx SpecContext) {
		a := join(ctx, "installed-1")
		own := a.hub()
		request := a.ask(ctx, own)
		a.fetch(ctx, own, request)
		Eventually(setSays).WithArguments(ctx, "default").Should(Equal("False/ClustersSelected: 1 ManagedClusters selected"))
		Eventually(setSays).WithArguments(ctx, "global").Should(Equal("False/ClustersSelected: 1 ManagedClusters selected"))
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named("installed-1")})
	})

	It("serves a cluster of two hubs, and continues when the other hub denies it", func(ctx SpecContext) {
		second := join(ctx, first.cluster)
		other := expect.Client(build.Unlimited(suiteHub.Config()), kinds())
		first.renewLease(ctx, time.Now())
		By("the first hub denying it: the klusterlet can read only that")
		Expect(other.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(first.cluster)}, expect.MergePatch(`{"spec":{"hubAcceptsClient":false}}`))).To(Succeed())
		Eventually(func() error {
			return first.hub().Get(ctx, client.ObjectKey{Namespace: first.cluster, Name: clusterv1.ClusterLease}, &coordinationv1.Lease{})
		}).Should(Satisfy(apierrors.IsForbidden))
		denied := &clusterv1.ManagedCluster{}
		Expect(first.hub().Get(ctx, client.ObjectKey{Name: first.cluster}, denied)).To(Succeed())
		Expect(denied.Spec.HubAcceptsClient).To(BeFalse())
		second.renewLease(ctx, time.Now())
		second.report(ctx, metav1.ConditionTrue, "ManagedClusterAvailable")
		By("each hub rejecting the other's certificate")
		stranger := *first
		stranger.bootstrap = second.bootstrap
		Expect(stranger.hub().Get(ctx, client.ObjectKey{Name: first.cluster}, denied)).To(Satisfy(apierrors.IsUnauthorized))
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(second.cluster)})
	})

	It("adds a cluster to the default set, and sets the time of taints", func(ctx SpecContext) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named("tainted"), Spec: clusterv1.ManagedClusterSpec{
			Taints: []clusterv1.Taint{{Key: "gpu", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(time.Unix(1, 0))}},
		}}
		expect.CreatedForSpec(ctx, hubClient, cluster)
		Expect(cluster.Labels).To(HaveKeyWithValue("cluster.open-cluster-management.io/clusterset", "default"))
		Expect(cluster.Spec.LeaseDurationSeconds).To(BeEquivalentTo(60))
		Expect(cluster.Spec.Taints[0].TimeAdded.Time).To(BeTemporally("~", time.Now(), time.Minute))
		Eventually(func() ([]string, error) {
			cluster, err := clusterOf(ctx, "tainted")
			var dated []string
			for _, taint := range cluster.Spec.Taints {
				if !taint.TimeAdded.IsZero() {
					dated = append(dated, taint.Key)
				}
			}
			return dated, err
		}).Should(ConsistOf("gpu", "cluster.open-cluster-management.io/unreachable"))

		err := hubClient.Patch(ctx, cluster, expect.MergePatch(`{"spec":{"taints":[{"key":"new","effect":"NoSelect","timeAdded":"2026-01-01T00:00:00Z"}]}}`))
		Expect(err).To(And(Satisfy(apierrors.IsBadRequest), MatchError(ContainSubstring(`It is not allowed to set TimeAdded of Taint "new".`))))
	})

	It("lets users change a cluster without the rights to accept or move it", func(ctx SpecContext) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named("changed"), Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		expect.CreatedForSpec(ctx, hubClient, cluster)
		replaced := expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":null,"k":"v"}},"spec":{"leaseDurationSeconds":0}}`)
		Expect(people.Patch(ctx, cluster, replaced)).To(Succeed())
		Expect(cluster.Labels).To(And(HaveKeyWithValue("k", "v"), HaveKeyWithValue("cluster.open-cluster-management.io/clusterset", "default")))
		Expect(cluster.Spec.LeaseDurationSeconds).To(BeEquivalentTo(60))
		Expect(people.Patch(ctx, cluster, expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":""}}}`))).To(Succeed())
		Expect(cluster.Labels).To(HaveKeyWithValue("cluster.open-cluster-management.io/clusterset", "default"))
	})

	It("accepts no new or known cluster while its namespace is being deleted", func(ctx SpecContext) {
		for _, name := range []string{"goes-before", "goes-after"} {
			namespace := build.Namespace(name)
			namespace.Finalizers = []string{"example.com/held"}
			expect.Created(ctx, hubClient, namespace)
			DeferCleanup(func(ctx SpecContext) {
				Expect(hubClient.Patch(ctx, namespace, expect.MergePatch(`{"metadata":{"finalizers":null}}`))).To(Succeed())
			})
		}
		after := &clusterv1.ManagedCluster{ObjectMeta: build.Named("goes-after")}
		expect.CreatedForSpec(ctx, hubClient, after)
		for _, name := range []string{"goes-before", "goes-after"} {
			Expect(hubClient.Delete(ctx, build.Namespace(name))).To(Succeed())
		}
		before := &clusterv1.ManagedCluster{ObjectMeta: build.Named("goes-before"), Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		terminating := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("is terminating")))
		Expect(hubClient.Create(ctx, before)).To(terminating)
		Expect(hubClient.Patch(ctx, after, expect.MergePatch(`{"spec":{"hubAcceptsClient":true}}`))).To(terminating)
	})

	It("serves OCM's webhooks with OCM's names and messages", func(ctx SpecContext) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named("no-address"), Spec: clusterv1.ManagedClusterSpec{
			ManagedClusterClientConfigs: []clusterv1.ClientConfig{{URL: "127.0.0.1:8001"}},
		}}
		Expect(hubClient.Create(ctx, cluster)).To(MatchError(
			`admission webhook "managedclustervalidators.admission.cluster.open-cluster-management.io" denied the request: url "127.0.0.1:8001" is invalid in client configs`))
	})

	DescribeTable("rejects with 400", func(ctx SpecContext, name, address, said string) {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		if address != "" {
			cluster.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: address}}
		}
		Expect(hubClient.Create(ctx, cluster)).To(And(Satisfy(apierrors.IsBadRequest), MatchError(ContainSubstring(said))))
	},
		Entry("an address that is not https", "plain", "http://x", `url "http://x" is invalid in client configs`),
		Entry("an invalid address", "none", "x", `url "x" is invalid in client configs`),
		Entry("an invalid name", "edge.example", "https://x", "metadata.name format is not correct"),
		Entry("an invalid name without addresses", "edge.example", "", "metadata.name format is not correct"),
	)

	It("checks rights to accept a cluster and to move it into another set", func(ctx SpecContext) {
		cluster := func() *clusterv1.ManagedCluster { return &clusterv1.ManagedCluster{ObjectMeta: build.Named("of-jane")} }
		accepted := expect.MergePatch(`{"spec":{"hubAcceptsClient":true}}`)
		moved := expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"team-a"}}}`)
		Expect(people.Create(ctx, cluster())).To(MatchError(ContainSubstring(`user "jane" cannot add/remove a ManagedCluster to/from ManagedClusterSet "default"`)))
		grant(ctx, "join-of-jane", joining("default"))
		Eventually(func() error { return people.Create(ctx, cluster()) }).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { expect.Removed(ctx, hubClient, cluster()) })

		at := cluster()
		at.Name, at.Spec.HubAcceptsClient = "accepted-by-jane", true
		Expect(people.Create(ctx, at)).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("HubAcceptsClient"))))
		err := people.Patch(ctx, cluster(), accepted)
		Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(
			`managedclusters/accept.cluster.open-cluster-management.io "of-jane" is forbidden: user "jane" cannot update the HubAcceptsClient field`))))
		err = people.Patch(ctx, cluster(), moved)
		Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(`ManagedClusterSet "team-a"`))))
		grant(ctx, "accept-of-jane", rbacv1.PolicyRule{
			APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/accept"}, ResourceNames: []string{"of-jane"}, Verbs: []string{"update"},
		})
		grant(ctx, "join-of-jane-too", joining("team-a"))
		Eventually(func() error { return people.Patch(ctx, cluster(), moved) }).Should(Succeed())
		Eventually(func() error { return people.Patch(ctx, cluster(), accepted) }).Should(Succeed())
	})

	It("checks rights to bind a set, which must have the binding's name", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		binding := func(name, set string) *clusterv1beta2.ManagedClusterSetBinding {
			return &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(namespace, name), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set}}
		}
		Expect(hubClient.Create(ctx, binding("a", "b"))).To(And(Satisfy(apierrors.IsBadRequest), MatchError(ContainSubstring("must have the same name as the target"))))
		Expect(people.Create(ctx, binding("team-a", "team-a"))).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(`user "jane" is not allowed to bind cluster set "team-a"`))))
		grant(ctx, "bind-of-jane", rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/bind"}, ResourceNames: []string{"team-a"}, Verbs: []string{"create"}})
		Eventually(func() error { return people.Create(ctx, binding("team-a", "team-a")) }).Should(Succeed())
		Expect(hubClient.Patch(ctx, binding("team-a", ""), expect.MergePatch(`{"spec":{"clusterSet":"b"}}`))).To(Satisfy(apierrors.IsBadRequest))
		By("requiring no right to change its labels")
		others := binding("of-others", "of-others")
		Expect(hubClient.Create(ctx, others)).To(Succeed())
		Expect(people.Patch(ctx, others, expect.MergePatch(`{"metadata":{"labels":{"owner":"jane"}}}`))).To(Succeed())
	})
})

// grant grants jane a right on the whole hub.
func grant(ctx context.Context, name string, rule rbacv1.PolicyRule) {
	GinkgoHelper()
	expect.Created(ctx, hubClient,
		&rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: build.Named(name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "jane"}},
		})
}

func joining(set string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"}, ResourceNames: []string{set}, Verbs: []string{"create"}}
}
