// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/policies"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Decisions", func() {
	It("are one empty object with the reason when no cluster fits", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect))
		nobody := selects(func(s *clusterv1beta1.ClusterSelector) {
			s.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
		})
		p := b.place(ctx, "p", both(wants(3), nobody))
		Eventually(said(ctx, p)).Should(HaveExactElements(fine,
			"PlacementSatisfied=False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate: 0 of 2 clusters fit: 2 lacked label env=prod"))
		all := decisions(ctx, p)
		Expect(all).To(HaveLen(1))
		Expect(all[0].Status.Decisions).To(BeEmpty())
		Expect(all[0].Name).To(Equal("p-decision-1"))
		tolerant := b.place(ctx, "few", wants(3))
		Eventually(said(ctx, tolerant)).Should(HaveExactElements(fine,
			"PlacementSatisfied=False NotAllDecisionsScheduled: 2 cluster decisions unscheduled: 1 of 2 clusters fit: 1 tainted maintenance:NoSelect"))
		elsewhere := b.place(ctx, "elsewhere", func(spec *clusterv1beta1.PlacementSpec) { spec.ClusterSets = []string{"a", "b"} })
		Eventually(said(ctx, elsewhere)).Should(HaveExactElements(fine, "PlacementSatisfied=False NoIntersection: None of ManagedClusterSets [a,b] is bound to placement namespace"))
		empty := (&bed{namespace: expect.FreshNamespace(ctx, hubClient)})
		empty.set(ctx, empty.namespace)
		empty.bind(ctx, empty.namespace)
		none := empty.place(ctx, "none", nil)
		Eventually(said(ctx, none)).Should(HaveExactElements(fine,
			fmt.Sprintf("PlacementSatisfied=False AllManagedClusterSetsEmpty: All ManagedClusterSets [%s] have no member ManagedCluster", empty.namespace)))
	})

	DescribeTable("are empty, and the condition names the error, with",
		func(ctx SpecContext, wrong func(*clusterv1beta1.PlacementSpec), message string) {
			b := newBed(ctx, 1)
			p := b.place(ctx, "p", wrong)
			Eventually(said(ctx, p)).Should(HaveExactElements(
				HavePrefix("PlacementMisconfigured=True Misconfigured: "+message),
				"PlacementSatisfied=False NoManagedClusterMatched: No ManagedCluster matches any of the cluster predicate"))
			Eventually(chosen(ctx, p)).Should(BeEmpty())
			admin(ctx, "", "patch", "placement", "p", "-n", b.namespace, "--type=json", "--patch", `[{"op": "replace", "path": "/spec", "value": {}}]`)
			Eventually(said(ctx, p)).Should(HaveExactElements(fine, satisfied))
			Expect(chosen(ctx, p)(Default)).To(Equal(b.names(1)))
		},
		Entry("a toleration of every key by value", tolerates(clusterv1beta1.Toleration{Value: "x"}), "TaintToleration:If the key is empty, operator must be Exists."),
		Entry("a toleration of existence with a value", tolerates(clusterv1beta1.Toleration{Key: "a", Operator: "Exists", Value: "x"}), "TaintToleration:If the operator is Exists, the value should be empty."),
		Entry("an unknown score", scores("Luck"), "PrioritizerPolicy:incorrect builtin prioritizer: Luck"),
		Entry("an unknown mode", func(spec *clusterv1beta1.PlacementSpec) { spec.PrioritizerPolicy.Mode = "Free" }, "PrioritizerPolicy:incorrect prioritizer policy mode: Free"),
		Entry("an expression that does not compile", selects(func(s *clusterv1beta1.ClusterSelector) { s.CELSelector.CELExpressions = []string{"managedCluster."} }), "Predicate:compilation failed: "),
		Entry("an operator of claims that there is not", selects(func(s *clusterv1beta1.ClusterSelector) {
			s.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
		}), `Predicate:"Is" is not a valid label selector operator`),
	)

	It("are restored when a user changes or deletes them, and other users' decisions stay", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		p := b.place(ctx, "p", nil)
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2)))
		byHand := &clusterv1beta1.PlacementDecision{ObjectMeta: build.In(b.namespace, "by-hand")}
		byHand.Labels = map[string]string{clusterv1beta1.PlacementLabel: "nobody"}
		expect.Created(ctx, hubClient, byHand)
		Expect(hubClient.Status().Patch(ctx, byHand, expect.MergePatch(`{"status": {"decisions": [{"clusterName": "x", "reason": ""}]}}`))).To(Succeed())

		is := decisions(ctx, p)[0]
		By("changing a cluster")
		Expect(hubClient.Status().Patch(ctx, &is, expect.MergePatch(`{"status": {"decisions": [{"clusterName": "x", "reason": ""}]}}`))).To(Succeed())
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2)))
		By("changing its labels")
		Expect(hubClient.Patch(ctx, &is, expect.MergePatch(`{"metadata": {"labels": {"cluster.open-cluster-management.io/placement": "q"}}}`))).To(Succeed())
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2)))
		By("deleting it")
		Expect(hubClient.Delete(ctx, &is)).To(Succeed())
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2)))
		By("adding one")
		extra := &clusterv1beta1.PlacementDecision{ObjectMeta: build.In(b.namespace, "extra")}
		extra.Labels = map[string]string{clusterv1beta1.PlacementLabel: "p"}
		expect.Created(ctx, hubClient, extra)
		Eventually(expect.Gone(ctx, hubClient, extra)).Should(BeTrue())
		By("changing the status of the Placement")
		Expect(hubClient.Status().Patch(ctx, placementOf(b.namespace, "p"), expect.MergePatch(`{"status": {"numberOfSelectedClusters": 7, "conditions": []}}`))).To(Succeed())
		Eventually(said(ctx, p)).Should(HaveExactElements(fine, satisfied))
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(byHand), byHand)).To(Succeed())
		Expect(byHand.Status.Decisions).To(HaveLen(1))

		By("re-creating the Placement, also before the decisions of the previous one are deleted")
		expect.Removed(ctx, hubClient, placementOf(b.namespace, "p"))
		again := b.place(ctx, "p", wants(1))
		Eventually(func(g Gomega) {
			g.Expect(chosen(ctx, again)(g)).To(Equal(b.names(1)))
			all := decisions(ctx, again)
			g.Expect(all).To(HaveLen(1))
			g.Expect(metav1.IsControlledBy(&all[0], again)).To(BeTrue())
			g.Expect(all[0].OwnerReferences).To(HaveLen(1))
		}).Should(Succeed())
	})

	It("do not change while the annotation disables scheduling", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		p := b.place(ctx, "p", nil)
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1)))
		annotate := func(value string) {
			GinkgoHelper()
			Expect(hubClient.Patch(ctx, placementOf(b.namespace, "p"), expect.MergePatch(fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, clusterv1beta1.DisableAnnotation, value)))).To(Succeed())
		}
		annotate("true")
		Expect(writes(func() { b.join(ctx, b.name(2)) })).To(BeZero())
		annotate("false")
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2)))
	})

	It("of many clusters are not removed without a confirmation", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		p := b.place(ctx, "p", nil)
		Eventually(chosen(ctx, p)).Should(HaveLen(2))
		probe := b.place(ctx, "probe", nil)
		Eventually(chosen(ctx, probe)).Should(HaveLen(2))
		DeferCleanup(func(ctx SpecContext) {
			By("waiting until the API server no longer enforces the policy, because other specs delete Placements too")
			Eventually(func() error { return hubClient.Delete(ctx, probe, client.DryRunAll) }).Should(Succeed())
		})
		for _, object := range policies.ConfirmDeleteDeny.OfDecisions(policies.Parameters{ConfirmDeleteMembers: 1}) {
			expect.CreatedForSpec(ctx, hubClient, object)
		}
		try := func() error { return hubClient.Delete(ctx, placementOf(b.namespace, "p"), client.DryRunAll) }
		Eventually(try).Should(MatchError(ContainSubstring(
			"deleting Placement p takes what others bring there for it off 2 clusters; annotate it fleetgate.io/confirm-delete=true first")))
		few := b.place(ctx, "few", wants(1))
		Eventually(chosen(ctx, few)).Should(HaveLen(1))
		Expect(hubClient.Delete(ctx, few, client.DryRunAll)).To(Succeed())
		Expect(hubClient.Patch(ctx, placementOf(b.namespace, "p"), expect.MergePatch(`{"metadata": {"annotations": {"fleetgate.io/confirm-delete": "true"}}}`))).To(Succeed())
		Expect(try()).To(Succeed())
	})

	It("come from ManagedClusters whose namespaces are deleted only after a confirmation", func(ctx SpecContext) {
		b := newBed(ctx, 1)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.name(1)}}
		expect.CreatedForSpec(ctx, hubClient, namespace)
		for _, object := range policies.ConfirmDeleteDeny.OfClusters() {
			expect.CreatedForSpec(ctx, hubClient, object)
		}
		try := func() error { return hubClient.Delete(ctx, namespace, client.DryRunAll) }
		Eventually(try).Should(MatchError(ContainSubstring("namespace " + b.name(1) + " has the ManifestWorks of ManagedCluster " + b.name(1))))
		other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
		Expect(hubClient.Delete(ctx, other, client.DryRunAll)).To(Succeed())
		Expect(hubClient.Patch(ctx, namespace, expect.MergePatch(`{"metadata": {"annotations": {"fleetgate.io/confirm-delete": "true"}}}`))).To(Succeed())
		Eventually(try).Should(Succeed())
	})

	It("are grouped, numbered and named", func(ctx SpecContext) {
		b := newBed(ctx, 5)
		cluster(ctx, b.name(4), label("canary", "true"))
		p := b.place(ctx, "p", func(spec *clusterv1beta1.PlacementSpec) {
			spec.DecisionStrategy.GroupStrategy = clusterv1beta1.GroupStrategy{
				ClustersPerDecisionGroup: intstr.FromInt32(2),
				DecisionGroups: []clusterv1beta1.DecisionGroup{{GroupName: "canary", GroupClusterSelector: clusterv1beta1.GroupClusterSelector{
					LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}},
				}}},
			}
		})
		Eventually(chosen(ctx, p)).Should(Equal(b.names(4, 1, 2, 3, 5)))
		var told []string
		for _, d := range decisions(ctx, p) {
			told = append(told, strings.Join([]string{d.Name, d.Labels[clusterv1beta1.DecisionGroupIndexLabel], d.Labels[clusterv1beta1.DecisionGroupNameLabel], fmt.Sprint(len(d.Status.Decisions))}, " "))
		}
		Expect(told).To(Equal([]string{"p-decision-1 0 canary 1", "p-decision-2 1  2", "p-decision-3 2  2"}))
		is := placementOf(b.namespace, "p")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
		Expect(is.Status.DecisionGroups).To(Equal([]clusterv1beta1.DecisionGroupStatus{
			{DecisionGroupIndex: 0, DecisionGroupName: "canary", Decisions: []string{"p-decision-1"}, ClustersCount: 1},
			{DecisionGroupIndex: 1, Decisions: []string{"p-decision-2"}, ClustersCount: 2},
			{DecisionGroupIndex: 2, Decisions: []string{"p-decision-3"}, ClustersCount: 2},
		}))
		By("removing a group, which deletes its objects")
		cluster(ctx, b.name(4), label("canary", "false"))
		Eventually(chosen(ctx, p)).Should(Equal(b.names(1, 2, 3, 4, 5)))
		Expect(decisions(ctx, p)).To(HaveLen(3))
	})

	It("of many Placements at once are balanced as if decided one by one", func(ctx SpecContext) {
		b := newBed(ctx, 8)
		var all []*clusterv1beta1.Placement
		one := int32(1)
		for i := range 40 {
			all = append(all, b.place(ctx, fmt.Sprintf("p%d", i), func(spec *clusterv1beta1.PlacementSpec) { spec.NumberOfClusters = &one }))
		}
		counts := map[string]int{}
		for _, p := range all {
			Eventually(chosen(ctx, p)).Should(HaveLen(1))
			counts[chosen(ctx, p)(Default)[0]]++
		}
		for _, name := range b.names(1, 2, 3, 4, 5, 6, 7, 8) {
			Expect(counts).To(HaveKeyWithValue(name, 5))
		}
		By("adding a cluster, and each Placement is decided once")
		Expect(writes(func() { b.join(ctx, b.name(9)) })).To(BeNumerically("<=", len(all)))
	})

	It("are spread and sorted by score on request", func(ctx SpecContext) {
		b := newBed(ctx, 4)
		for n, region := range []string{"a", "a", "a", "b"} {
			cluster(ctx, b.name(n+1), claim("region", region))
			score(ctx, b.name(n+1), int32(10-n), nil)
		}
		spread := func(spec *clusterv1beta1.PlacementSpec) {
			spec.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraint{{
				TopologyKey: "region", TopologyKeyType: clusterv1beta1.TopologyClaim, MaxSkew: 1, WhenUnsatisfiable: clusterv1beta1.DoNotSchedule,
			}}
		}
		hard := b.place(ctx, "hard", both(wants(4), spread))
		Eventually(said(ctx, hard)).Should(HaveExactElements(fine, HavePrefix("PlacementSatisfied=False NotAllDecisionsScheduled: 1 cluster decisions unscheduled: 3 of 4 clusters fit: 1 violated topology spread constraint \"region\" (max skew 1)")))
		Expect(chosen(ctx, hard)(Default)).To(Equal(b.names(1, 2, 4)))

		sorted := b.place(ctx, "sorted", both(wants(4), scores("usage/cpu"), func(spec *clusterv1beta1.PlacementSpec) {
			spec.SortBy, spec.ScoreRateLimit = clusterv1beta1.SortByScore, "3s"
		}))
		Eventually(chosen(ctx, sorted)).Should(Equal(b.names(1, 2, 3, 4)))
		Expect(*decisions(ctx, sorted)[0].Status.Decisions[0].Score).To(BeEquivalentTo(10))
		By("changing scores alone, which are published at the allowed rate")
		score(ctx, b.name(4), 99, nil)
		Eventually(chosen(ctx, sorted)).Should(Equal(b.names(4, 1, 2, 3)))
		is := placementOf(b.namespace, "sorted")
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
		Expect(is.Status.LastScoreUpdateTime).NotTo(BeNil())
	})
})
