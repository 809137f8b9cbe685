// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// placeIn creates a ResourcePlacement of the ConfigMaps in a namespace.
func placeIn(ctx context.Context, namespace, name, spec string) *placementv1beta1.ResourcePlacement {
	GinkgoHelper()
	rp := namespacedPlacement(namespace, name, spec)
	Expect(hub.Create(ctx, rp)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(hub.Delete(ctx, rp))).To(Succeed())
		if CurrentSpecReport().Failed() {
			// Works must be deleted before their member, because they would disturb a second attempt.
			Eventually(func(g Gomega) {
				var left placementv1beta1.ResourceBindingList
				g.Expect(hub.List(ctx, &left, client.InNamespace(namespace))).To(Succeed())
				g.Expect(left.Items).To(BeEmpty())
			}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		}
	})
	return rp
}

func namespacedPlacement(namespace, name, spec string) *placementv1beta1.ResourcePlacement {
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
	It("delivers selected resources of its namespace to members, and removes them", func(ctx SpecContext) {
		shop(ctx, "ra-shop")
		joinAll(ctx, "ra", nil, nil)
		rp := placeIn(ctx, "ra-shop", "settings", "ra")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("ra-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))

		By("checking names, labels and status")
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

		By("changing a ConfigMap")
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

	It("does not touch another placement's Work with the same name", func(ctx SpecContext) {
		shop(ctx, "rb-shop")
		joinAll(ctx, "rb", nil)
		crp := &placementv1beta1.ClusterResourcePlacement{}
		crp.Name = "rb-shop.settings" // Its Work has the same name as that of rb-shop/settings.
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

		By("using the name once it is free")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp)).To(Succeed())
		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("rb-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
	})

	It("places nothing from system namespaces", func(ctx SpecContext) {
		makeNamespace(ctx, "fleet-rc")
		joinAll(ctx, "rc", nil)
		placeIn(ctx, "fleet-rc", "settings", "rc")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("fleet-rc", "settings").WithTimeout(soon).WithPolling(often).Should(Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))
	})

	It("selects only members with its namespace, if members report their namespaces", func(ctx SpecContext) {
		shop(ctx, "rd-shop")
		joinAll(ctx, "rd", nil, nil)
		report(ctx, "rd-1", collects(metav1.ConditionTrue, "other"))
		placeIn(ctx, "rd-shop", "settings", "rd")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("rd-shop", "settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		_, err := namespacedWork(ctx, "rd-1", "rd-shop.settings-work")
		Expect(err).To(HaveOccurred())

		By("reporting the namespace")
		report(ctx, "rd-1", func(status *clusterv1beta1.MemberClusterStatus) {
			status.Namespaces["rd-shop"] = ""
		})
		Eventually(func() error { _, err := namespacedWork(ctx, "rd-1", "rd-shop.settings-work"); return err }).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})

	// The first of three members has the namespace and the second has others; the entry defines the
	// third.
	DescribeTable("of type PickN selects members with its namespace, and reports the others",
		func(ctx SpecContext, name string, wanted int32, third func(*clusterv1beta1.MemberClusterStatus), picked, named []string) {
			namespace := name + "-shop"
			shop(ctx, namespace)
			joinAll(ctx, name, nil, nil, nil)
			report(ctx, name+"-1", collects(metav1.ConditionTrue, namespace, "default"))
			report(ctx, name+"-2", collects(metav1.ConditionTrue, "other"))
			report(ctx, name+"-3", third)
			rp := namespacedPlacement(namespace, "settings", name)
			rp.Spec.Policy.PlacementType, rp.Spec.Policy.NumberOfClusters = placementv1beta1.PickN, &wanted
			Expect(hub.Create(ctx, rp)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, rp))).To(Succeed()) })

			missing := func(member string) placementv1beta1.ClusterDecision {
				return placementv1beta1.ClusterDecision{ClusterName: name + member, Reason: "ClusterUnschedulable, target namespace does not exist on cluster"}
			}
			Eventually(func(g Gomega) {
				g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(rp), rp)).To(Succeed())
				var on []string
				failed := 0
				for _, status := range rp.Status.PlacementStatuses {
					if status.ClusterName == "" {
						failed++
						g.Expect(brief(status.Conditions, "", rp.Generation)).To(Equal([]string{"Scheduled=False/ScheduleFailed"}))
						g.Expect(status.Conditions[0].Message).To(Equal("ClusterUnschedulable, target namespace does not exist on cluster"))
						continue
					}
					g.Expect(brief(status.Conditions, "", rp.Generation)).To(Equal(memberTrue))
					on = append(on, strings.TrimPrefix(status.ClusterName, name))
				}
				g.Expect(on).To(ConsistOf(picked))
				g.Expect(failed).To(Equal(int(wanted) - len(picked)))
				scheduled := "Scheduled=True/SchedulingPolicyFulfilled"
				if failed > 0 {
					scheduled = "Scheduled=False/SchedulingPolicyUnfulfilled"
				}
				g.Expect(brief(rp.Status.Conditions, "ResourcePlacement", rp.Generation)).To(ContainElement(scheduled))

				var policies placementv1beta1.SchedulingPolicySnapshotList
				g.Expect(hub.List(ctx, &policies, client.InNamespace(namespace))).To(Succeed())
				g.Expect(policies.Items).To(HaveLen(1))
				for _, member := range named {
					g.Expect(policies.Items[0].Status.TargetClusters).To(ContainElement(missing(member)))
				}
			}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		},
		Entry("as many as have it", "pa", int32(1), collects(metav1.ConditionTrue), []string{"-1"}, []string{"-2", "-3"}),
		Entry("more than have it", "pb", int32(2), collects(metav1.ConditionTrue), []string{"-1"}, []string{"-2", "-3"}),
		Entry("a member whose agent reports no namespaces, like the previous version", "pc", int32(2),
			func(*clusterv1beta1.MemberClusterStatus) {}, []string{"-1", "-3"}, []string{"-2"}),
		Entry("a member with more namespaces than it reports", "pd", int32(2),
			collects(metav1.ConditionFalse, "other"), []string{"-1", "-3"}, []string{"-2"}),
		Entry("a member whose agent cannot list them", "pe", int32(2),
			collects(metav1.ConditionUnknown), []string{"-1", "-3"}, []string{"-2"}),
	)
})

// collects makes a member report these namespaces, and whether they are complete.
func collects(all metav1.ConditionStatus, namespaces ...string) func(*clusterv1beta1.MemberClusterStatus) {
	return func(status *clusterv1beta1.MemberClusterStatus) {
		status.Namespaces = map[string]string{}
		for _, namespace := range namespaces {
			status.Namespaces[namespace] = ""
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: "NamespaceCollectionSucceeded", Status: all, Reason: "Test"})
	}
}
