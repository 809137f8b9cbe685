// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// placeIn makes a ResourcePlacement of the ConfigMaps of a namespace.
func placeIn(ctx context.Context, namespace, name, spec string) *placementv1beta1.ResourcePlacement {
	GinkgoHelper()
	rp := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	rp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap"}}
	rp.Spec.Policy = &placementv1beta1.PlacementPolicy{
		PlacementType: placementv1beta1.PickAll,
		Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{fleetLabel: spec}}},
			}},
		}},
	}
	Expect(hub.Create(ctx, rp)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, rp))).To(Succeed()) })
	return rp
}

func namespacedSummary(ctx context.Context, namespace, name string) ([]string, error) {
	rp := &placementv1beta1.ResourcePlacement{}
	err := hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, rp)
	return brief(rp.Status.Conditions, "ResourcePlacement", rp.Generation), err
}

func namespacedWork(ctx context.Context, member, name string) (*placementv1beta1.Work, error) {
	work := &placementv1beta1.Work{}
	return work, hub.Get(ctx, types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace(member), Name: name}, work)
}

var _ = Describe("A ResourcePlacement", func() {
	It("brings what it selects in its namespace to members, and takes it away again", func(ctx SpecContext) {
		shop(ctx, "ra-shop")
		joinAll(ctx, "ra", nil, nil)
		rp := placeIn(ctx, "ra-shop", "settings", "ra")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("ra-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))

		By("looking at names, labels and status")
		work, err := namespacedWork(ctx, "ra-1", "ra-shop.settings-work")
		Expect(err).NotTo(HaveOccurred())
		Expect(kindsIn(work)).To(Equal([]string{"ConfigMap/settings"}))
		Expect(work.Labels).To(HaveKeyWithValue("kubernetes-fleet.io/parent-CRP", "settings"))
		Expect(work.Labels).To(HaveKeyWithValue("kubernetes-fleet.io/parent-placement-namespace", "ra-shop"))
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(rp), rp)).To(Succeed())
		Expect(rp.Finalizers).To(ConsistOf("kubernetes-fleet.io/crp-cleanup", "kubernetes-fleet.io/scheduler-cleanup"))
		Expect(rp.Status.SelectedResources).To(Equal([]placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: "ConfigMap", Namespace: "ra-shop", Name: "settings"}}))
		Expect(rp.Status.PlacementStatuses).To(HaveLen(2))
		var bindings placementv1beta1.ResourceBindingList
		Expect(hub.List(ctx, &bindings, client.InNamespace("ra-shop"))).To(Succeed())
		Expect(bindings.Items).To(HaveLen(2))

		By("following a change")
		changeSettings(ctx, "ra-shop", "green")
		Eventually(func() (string, error) {
			work, err := namespacedWork(ctx, "ra-2", "ra-shop.settings-work")
			if err != nil || len(work.Spec.Workload.Manifests) == 0 {
				return "", err
			}
			return string(work.Spec.Workload.Manifests[0].Raw), nil
		}).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("green"))

		By("a member that joins later")
		join(ctx, "ra-3", map[string]string{fleetLabel: "ra"})
		agent("ra-3")
		Eventually(func() error { _, err := namespacedWork(ctx, "ra-3", "ra-shop.settings-work"); return err }).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("deleting it")
		Expect(hub.Delete(ctx, rp)).To(Succeed())
		Eventually(func(g Gomega) {
			for _, list := range []client.ObjectList{
				&placementv1beta1.ResourceBindingList{}, &placementv1beta1.ResourceSnapshotList{}, &placementv1beta1.SchedulingPolicySnapshotList{}, &placementv1beta1.ResourcePlacementList{},
			} {
				g.Expect(hub.List(ctx, list, client.InNamespace("ra-shop"))).To(Succeed())
				g.Expect(list).To(HaveField("Items", BeEmpty()))
			}
			var works placementv1beta1.WorkList
			g.Expect(hub.List(ctx, &works, client.MatchingLabels{placementv1beta1.ParentPlacementNamespaceLabel: "ra-shop"})).To(Succeed())
			g.Expect(works.Items).To(BeEmpty())
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})

	It("leaves another placement's Work alone whose name is the same", func(ctx SpecContext) {
		shop(ctx, "rb-shop")
		joinAll(ctx, "rb", nil)
		crp := &placementv1beta1.ClusterResourcePlacement{}
		crp.Name = "rb-shop.settings" // Its Work is called as that of rb-shop/settings.
		place(ctx, crp.Name, "rb-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"rb-1"}}
		})
		expectAvailable(ctx, crp.Name, "0")
		placeIn(ctx, "rb-shop", "settings", "rb")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("rb-shop", "settings").WithTimeout(soon).WithPolling(often).Should(ContainElement("WorkSynchronized=False/WorkNotSynchronizedYet"))
		rp := &placementv1beta1.ResourcePlacement{}
		Expect(hub.Get(ctx, types.NamespacedName{Namespace: "rb-shop", Name: "settings"}, rp)).To(Succeed())
		Expect(rp.Status.PlacementStatuses[0].Conditions).To(ContainElement(HaveField("Message", ContainSubstring(`of placement "rb-shop.settings"`))))
		expectAvailable(ctx, crp.Name, "0")

		By("taking the name once it is free")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp)).To(Succeed())
		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("rb-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
	})

	It("places nothing out of namespaces of the system", func(ctx SpecContext) {
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-rc"}}))).To(Succeed())
		joinAll(ctx, "rc", nil)
		placeIn(ctx, "fleet-rc", "settings", "rc")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("fleet-rc", "settings").WithTimeout(soon).WithPolling(often).Should(Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))
	})

	It("goes only where its namespace is, if members say which they have", func(ctx SpecContext) {
		shop(ctx, "rd-shop")
		joinAll(ctx, "rd", nil, nil)
		report(ctx, "rd-1", func(status *clusterv1beta1.MemberClusterStatus) {
			status.Namespaces = map[string]string{"other": ""}
			status.Conditions = []metav1.Condition{{Type: "NamespaceCollectionSucceeded", Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}}
		})
		placeIn(ctx, "rd-shop", "settings", "rd")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("rd-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		_, err := namespacedWork(ctx, "rd-1", "rd-shop.settings-work")
		Expect(err).To(HaveOccurred())

		By("telling of the namespace")
		report(ctx, "rd-1", func(status *clusterv1beta1.MemberClusterStatus) {
			status.Namespaces["rd-shop"] = ""
		})
		Eventually(func() error { _, err := namespacedWork(ctx, "rd-1", "rd-shop.settings-work"); return err }).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})
})
