// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A Placement is decided again", func() {
	byLabel := selects(func(s *clusterv1beta1.ClusterSelector) {
		s.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
	})
	byClaim := selects(func(s *clusterv1beta1.ClusterSelector) {
		s.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: []string{"eu"}}}
	})
	byExpression := selects(func(s *clusterv1beta1.ClusterSelector) {
		s.CELSelector.CELExpressions = []string{`managedCluster.status.version.kubernetes == "v1.30.0"`}
	})
	byScores := selects(func(s *clusterv1beta1.ClusterSelector) {
		s.CELSelector.CELExpressions = []string{`managedCluster.scores("usage").exists(s, s.name == "cpu" && s.value > 5)`}
	})
	all := func(*clusterv1beta1.PlacementSpec) {}
	DescribeTable("on a change of",
		func(ctx SpecContext, spec func(*clusterv1beta1.PlacementSpec), before []int, change func(context.Context, *bed), after []int) {
			b := newBed(ctx, 2)
			placement := b.place(ctx, "p", spec)
			Eventually(chosen(ctx, placement)).Should(Equal(b.names(before...)))
			change(ctx, b)
			Eventually(chosen(ctx, placement)).Should(Equal(b.names(after...)))
		},
		Entry("a label", byLabel, nil, func(ctx context.Context, b *bed) { cluster(ctx, b.name(2), label("env", "prod")) }, []int{2}),
		Entry("a claim", byClaim, nil, func(ctx context.Context, b *bed) { cluster(ctx, b.name(2), claim("region", "eu")) }, []int{2}),
		Entry("a field that an expression names", byExpression, nil, func(ctx context.Context, b *bed) {
			cluster(ctx, b.name(2), func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1.30.0" })
		}, []int{2}),
		Entry("scores that an expression lists", byScores, nil, func(ctx context.Context, b *bed) { score(ctx, b.name(2), 6, nil) }, []int{2}),
		Entry("a taint", all, []int{1, 2}, func(ctx context.Context, b *bed) { cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect)) }, []int{2}),
		Entry("allocatable CPU", both(wants(1), scores("ResourceAllocatableCPU")), []int{1}, func(ctx context.Context, b *bed) { cluster(ctx, b.name(2), cpu("3")) }, []int{2}),
		Entry("a score", both(wants(1), scores("usage/cpu")), []int{1}, func(ctx context.Context, b *bed) { score(ctx, b.name(2), 1, nil) }, []int{2}),
		Entry("a new cluster", all, []int{1, 2}, func(ctx context.Context, b *bed) { b.join(ctx, b.name(3)) }, []int{1, 2, 3}),
		Entry("a deleted cluster", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(b.name(1))})
		}, []int{2}),
		Entry("a cluster that is being deleted", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			held := func(c *clusterv1.ManagedCluster) { c.Finalizers = []string{"test.fleetgate.io/held"} }
			cluster(ctx, b.name(1), held)
			Expect(hubClient.Delete(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named(b.name(1))})).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				held := &clusterv1.ManagedCluster{ObjectMeta: build.Named(b.name(1))}
				Expect(client.IgnoreNotFound(hubClient.Patch(ctx, held, expect.MergePatch(`{"metadata": {"finalizers": null}}`)))).To(Succeed())
			})
		}, []int{2}),
		Entry("the set of a cluster", all, []int{1, 2}, func(ctx context.Context, b *bed) { cluster(ctx, b.name(2), label(clusterv1.ClusterSetLabel, "other")) }, []int{1}),
		Entry("the selector of a set", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(b.namespace)}
			Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "cluster"}}}
			Expect(hubClient.Update(ctx, set)).To(Succeed())
		}, nil),
		Entry("a deleted set", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			expect.Removed(ctx, hubClient, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(b.namespace)})
		}, nil),
		Entry("a deleted binding", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			expect.Removed(ctx, hubClient, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(b.namespace, b.namespace)})
		}, nil),
		Entry("its spec", wants(1), []int{1}, func(ctx context.Context, b *bed) {
			Expect(hubClient.Patch(ctx, &clusterv1beta1.Placement{ObjectMeta: build.In(b.namespace, "p")}, expect.MergePatch(`{"spec": {"numberOfClusters": 2}}`))).To(Succeed())
		}, []int{1, 2}),
		Entry("its spec, to fewer clusters", wants(2), []int{1, 2}, func(ctx context.Context, b *bed) {
			Expect(hubClient.Patch(ctx, &clusterv1beta1.Placement{ObjectMeta: build.In(b.namespace, "p")}, expect.MergePatch(`{"spec": {"numberOfClusters": 1}}`))).To(Succeed())
		}, []int{1}),
		Entry("its spec, to other sets", all, []int{1, 2}, func(ctx context.Context, b *bed) {
			Expect(hubClient.Patch(ctx, &clusterv1beta1.Placement{ObjectMeta: build.In(b.namespace, "p")}, expect.MergePatch(`{"spec": {"clusterSets": ["other"]}}`))).To(Succeed())
		}, nil),
	)

	It("when a set and a binding are created in any order", func(ctx SpecContext) {
		b := &bed{namespace: expect.FreshNamespace(ctx, hubClient)}
		b.join(ctx, b.name(1))
		placement := b.place(ctx, "p", nil)
		Eventually(said(ctx, placement)).Should(HaveExactElements(fine, "PlacementSatisfied=False NoManagedClusterSetBindings: No valid ManagedClusterSetBindings found in placement namespace"))
		b.bind(ctx, b.namespace)
		b.set(ctx, b.namespace)
		Eventually(chosen(ctx, placement)).Should(Equal(b.names(1)))
	})

	It("when a toleration or a score expires", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect))
		seconds := int64(4)
		tolerating := b.place(ctx, "tolerating", both(wants(1), tolerates(clusterv1beta1.Toleration{Key: "maintenance", Operator: "Exists", TolerationSeconds: &seconds})))
		Eventually(chosen(ctx, tolerating)).Should(Equal(b.names(1)))
		Eventually(chosen(ctx, tolerating)).Should(Equal(b.names(2)))

		cluster(ctx, b.name(1), untaint)
		until := metav1.NewTime(time.Now().Add(4 * time.Second))
		score(ctx, b.name(2), 50, &until)
		scoring := b.place(ctx, "scoring", both(wants(1), scores("usage/cpu")))
		Eventually(chosen(ctx, scoring)).Should(Equal(b.names(2)))
		Eventually(chosen(ctx, scoring)).Should(Equal(b.names(1)))
	})
})

var _ = Describe("The gateway writes nothing", func() {
	It("when clusters report fields that no Placement uses", func(ctx SpecContext) {
		b := newBed(ctx, 3)
		placement := b.place(ctx, "p", both(wants(2), selects(func(s *clusterv1beta1.ClusterSelector) {
			s.CELSelector.CELExpressions = []string{`managedCluster.metadata.name != "x"`}
		})))
		Eventually(said(ctx, placement)).Should(HaveExactElements(fine, satisfied))
		Expect(writes(func() {
			for n := 1; n <= 3; n++ {
				cluster(ctx, b.name(n), func(c *clusterv1.ManagedCluster) {
					label("colour", "blue")(c)
					cpu("7")(c)
					claim("any", "thing")(c)
					c.Status.Version.Kubernetes = "v1.31.0"
				})
				score(ctx, b.name(n), 3, nil)
			}
		})).To(BeZero())
	})

	It("but one decision and one status per Placement when one cluster changes", func(ctx SpecContext) {
		b := newBed(ctx, 250)
		placement := b.place(ctx, "p", nil)
		Eventually(chosen(ctx, placement)).Should(HaveLen(250))
		Expect(decisions(ctx, placement)).To(HaveLen(3))
		Expect(writes(func() {
			cluster(ctx, b.name(1), taint(clusterv1.TaintEffectNoSelect))
			Eventually(chosen(ctx, placement)).Should(HaveLen(249))
		})).To(BeEquivalentTo(2))
		Expect(writes(func() {
			cluster(ctx, b.name(1), untaint)
			Eventually(chosen(ctx, placement)).Should(HaveLen(250))
		})).To(BeEquivalentTo(2))
	})
})
