// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/dispatch"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// startLimited runs placement with placement.tenancy: cluster-sets for the rest of a spec.
func startLimited(ctx context.Context) {
	GinkgoHelper()
	ours, err := crds.ForHub(placementv1beta1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hub.Config(), envtest.CRDInstallOptions{CRDs: ours, MaxTime: time.Minute})
	Expect(err).NotTo(HaveOccurred())
	rest, err := hub.ConfigFor(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	skip := true
	limited := expect.Started(func(context.Context) (func(context.Context) error, error) {
		mgr, err := ctrl.NewManager(build.Unlimited(rest), ctrl.Options{
			Scheme: kinds(), Metrics: server.Options{BindAddress: "0"},
			Cache: cache.Options{ByObject: dispatch.CacheOptions()}, Controller: config.Controller{SkipNameValidation: &skip},
		})
		if err != nil {
			return nil, err
		}
		tenancy := clusterset.Tenancy{Reader: mgr.GetClient(), Counts: membermirror.Members{Hub: mgr.GetClient()}.IsMember}
		return mgr.Start, placement.SetupWithManager(ctx, mgr, placement.Options{Tenancy: tenancy})
	})
	DeferCleanup(limited.Stop)
}

// placedOn are the members that a ResourcePlacement has selected, and its message.
func placedOn(ctx context.Context, c client.Client, namespace string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &placementv1beta1.ResourceBindingList{}
		g.Expect(c.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		chosen := []string{}
		for i := range list.Items {
			if b := &list.Items[i]; b.Spec.State != placementv1beta1.BindingUnscheduled && b.DeletionTimestamp == nil {
				chosen = append(chosen, b.Spec.TargetCluster)
			}
		}
		return chosen
	}
}

func scheduled(ctx context.Context, c client.Client, namespace string) func(Gomega) string {
	return func(g Gomega) string {
		list := &placementv1beta1.SchedulingPolicySnapshotList{}
		g.Expect(c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{placementv1beta1.IsLatestSnapshotLabel: "true"})).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		condition := apimeta.FindStatusCondition(list.Items[0].Status.Conditions, placementv1beta1.ConditionScheduled)
		g.Expect(condition).NotTo(BeNil())
		return string(condition.Status) + " " + condition.Message
	}
}

var _ = Describe("A tenant whose namespace is limited to sets", func() {
	It("selects only members of those sets, gets a remedy for others, and loses removed ones", func(ctx SpecContext) {
		startLimited(ctx)
		c := expect.Client(build.Unlimited(hub.Config()), build.Scheme(placementv1beta1.AddToScheme))
		tenant, other := expect.FreshNamespace(ctx, hubClient), expect.FreshNamespace(ctx, hubClient)
		for _, set := range []string{"tenants", "others"} {
			expect.CreatedForSpec(ctx, hubClient, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(set)})
		}
		join := func(cluster, set string) {
			GinkgoHelper()
			Eventually(func() error {
				object := &clusterv1.ManagedCluster{ObjectMeta: build.Named(cluster)}
				return hubClient.Patch(ctx, object, expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"`+set+`"}}}`))
			}).Should(Succeed())
		}
		for member, set := range map[string]string{"tenancy-a": "tenants", "tenancy-b": "others"} {
			newMember(ctx, member, true)
			join(member, set)
		}
		bind := func(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
			binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(namespace, set)}
			binding.Spec.ClusterSet = set
			Expect(hubClient.Create(ctx, binding)).To(Succeed())
			return binding
		}
		bind(tenant, "tenants")
		bind(other, "others")
		expect.Created(ctx, hubClient, build.ConfigMap(tenant, "settings", "x", "1"))
		selected := []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
		placing := &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(tenant, "p"), Spec: placementv1beta1.PlacementSpec{ResourceSelectors: selected}}
		Expect(c.Create(ctx, placing)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { expect.Removed(ctx, c, placing) })
		Eventually(placedOn(ctx, c, tenant)).Should(HaveExactElements("tenancy-a"))
		Eventually(scheduled(ctx, c, tenant)).Should(And(HavePrefix("True found all cluster needed"),
			ContainSubstring(`namespace "`+tenant+`" may place on `), ContainSubstring(`("clusteradm clusterset bind SET --namespace `+tenant+`")`)))

		By("naming a member of another set")
		Expect(c.Patch(ctx, placing, expect.MergePatch(`{"spec":{"policy":{"placementType":"PickFixed","clusterNames":["tenancy-a","tenancy-b"]}}}`))).To(Succeed())
		Eventually(scheduled(ctx, c, tenant)).Should(HavePrefix("False could not find all clusters needed"))
		Consistently(placedOn(ctx, c, tenant)).Should(HaveExactElements("tenancy-a"))

		By("binding and unbinding its set")
		binding := bind(tenant, "others")
		Eventually(placedOn(ctx, c, tenant)).Should(ConsistOf("tenancy-a", "tenancy-b"))
		Expect(hubClient.Delete(ctx, binding)).To(Succeed())
		Eventually(placedOn(ctx, c, tenant)).Should(HaveExactElements("tenancy-a"))

		By("moving the member into another set")
		join("tenancy-a", "others")
		Eventually(placedOn(ctx, c, tenant)).Should(BeEmpty())
	})

	It("keeps a placement on members that leave the sets one after the other, until somebody confirms", func(ctx SpecContext) {
		startLimited(ctx)
		c := expect.Client(build.Unlimited(hub.Config()), build.Scheme(placementv1beta1.AddToScheme))
		tenant := expect.FreshNamespace(ctx, hubClient)
		expect.CreatedForSpec(ctx, hubClient, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("leavers")})
		label := func(cluster, value string) {
			GinkgoHelper()
			Eventually(func() error {
				object := &clusterv1.ManagedCluster{ObjectMeta: build.Named(cluster)}
				return hubClient.Patch(ctx, object, expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":`+value+`}}}`))
			}).Should(Succeed())
		}
		var members []string
		for i := range 6 {
			member := fmt.Sprintf("leaver-%d", i)
			newMember(ctx, member, true)
			label(member, `"leavers"`)
			members = append(members, member)
		}
		binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: build.In(tenant, "leavers")}
		binding.Spec.ClusterSet = "leavers"
		Expect(hubClient.Create(ctx, binding)).To(Succeed())
		expect.Created(ctx, hubClient, build.ConfigMap(tenant, "settings", "x", "1"))
		placing := &placementv1beta1.ResourcePlacement{ObjectMeta: build.In(tenant, "p")}
		placing.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
		Expect(c.Create(ctx, placing)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { expect.Removed(ctx, c, placing) })
		Eventually(placedOn(ctx, c, tenant)).Should(ConsistOf(members))
		suspension := func(g Gomega) string {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(placing), placing)).To(Succeed())
			if condition := apimeta.FindStatusCondition(placing.Status.Conditions, placementv1beta1.ConditionRemovalSuspended); condition != nil {
				return condition.Message
			}
			return ""
		}

		By("removing the label of four members, each a small removal")
		for i := range 4 {
			label(members[i], "null")
			Eventually(placedOn(ctx, c, tenant)).Should(ConsistOf(members[i+1:]))
		}
		Expect(suspension(Default)).To(BeEmpty())

		By("removing the label of a fifth one")
		label(members[4], "null")
		Eventually(suspension).Should(ContainSubstring("1 of 2 members are no longer bound to the namespace after 4 others"))
		Expect(placedOn(ctx, c, tenant)(Default)).To(ConsistOf(members[4:]))

		By("confirming the removal")
		_, token, found := strings.Cut(suspension(Default), placementv1beta1.ConfirmRemovalAnnotation+"=")
		Expect(found).To(BeTrue())
		Expect(c.Patch(ctx, placing, expect.MergePatch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, placementv1beta1.ConfirmRemovalAnnotation, token)))).To(Succeed())
		Eventually(placedOn(ctx, c, tenant)).Should(HaveExactElements(members[5]))
		Eventually(suspension).Should(BeEmpty())
	})
})
