// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// picking is a PickN policy for the spec's members.
func picking(n int32, change func(*placementv1beta1.PlacementPolicy)) func(*placementv1beta1.PlacementSpec) {
	return func(spec *placementv1beta1.PlacementSpec) {
		spec.Policy.PlacementType, spec.Policy.NumberOfClusters = placementv1beta1.PickN, &n
		if change != nil {
			change(spec.Policy)
		}
	}
}

// joinAll creates members <spec>-1, <spec>-2 and so on with an agent each; the labels are added to the
// spec's.
func joinAll(ctx context.Context, spec string, labels ...map[string]string) {
	GinkgoHelper()
	for i, more := range labels {
		all := map[string]string{fleetLabel: spec}
		for key, value := range more {
			all[key] = value
		}
		name := fmt.Sprintf("%s-%d", spec, i+1)
		join(ctx, name, all)
		agent(name)
	}
}

func edit(ctx context.Context, name string, change func(*clusterv1beta1.MemberCluster)) {
	GinkgoHelper()
	Eventually(func() error {
		member := &clusterv1beta1.MemberCluster{}
		if err := hub.Get(ctx, types.NamespacedName{Name: name}, member); err != nil {
			return err
		}
		change(member)
		return hub.Update(ctx, member)
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

func report(ctx context.Context, name string, change func(*clusterv1beta1.MemberClusterStatus)) {
	GinkgoHelper()
	Eventually(func() error {
		member := &clusterv1beta1.MemberCluster{}
		if err := hub.Get(ctx, types.NamespacedName{Name: name}, member); err != nil {
			return err
		}
		change(&member.Status)
		return hub.Status().Update(ctx, member)
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

func withProperty(name, value string) func(*clusterv1beta1.MemberClusterStatus) {
	return func(status *clusterv1beta1.MemberClusterStatus) {
		if status.Properties == nil {
			status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{}
		}
		status.Properties[clusterv1beta1.PropertyName(name)] = clusterv1beta1.PropertyValue{Value: value, ObservationTime: metav1.Now()}
	}
}

func taint(key string) func(*clusterv1beta1.MemberCluster) {
	return func(member *clusterv1beta1.MemberCluster) {
		member.Spec.Taints = []clusterv1beta1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
	}
}

func respec(ctx context.Context, name string, change func(*placementv1beta1.PlacementSpec)) {
	GinkgoHelper()
	Eventually(func() error {
		crp, err := statusOf(ctx, name)
		if err != nil {
			return err
		}
		change(&crp.Spec)
		return hub.Update(ctx, crp)
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

// placedOn are the members on which the placement is available, sorted by name.
func placedOn(ctx context.Context, name string) ([]string, error) {
	bindings, err := bindingsOf(ctx, name)
	var members []string
	for member, b := range bindings {
		if b.DeletionTimestamp == nil && b.Spec.State == placementv1beta1.BindingBound {
			members = append(members, member)
		}
	}
	slices.Sort(members)
	return members, err
}

func expectOn(ctx context.Context, name string, members ...string) {
	GinkgoHelper()
	Eventually(placedOn).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(Equal(members))
}

// expectStill asserts that nothing changes.
func expectStill(ctx context.Context, name string, members ...string) {
	GinkgoHelper()
	Consistently(placedOn).WithContext(ctx).WithArguments(name).WithTimeout(time.Second).WithPolling(often).Should(Equal(members))
}

func policySnapshot(ctx context.Context, name string) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	GinkgoHelper()
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	Expect(hub.Get(ctx, types.NamespacedName{Name: name}, s)).To(Succeed())
	return s
}

// decided is a policy snapshot's decision as "+member" and "-member", with its scores.
func decided(ctx context.Context, name string) ([]string, error) {
	s := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, s)
	var all []string
	for _, d := range s.Status.TargetClusters {
		sign := "-"
		if d.Selected {
			sign = "+"
		}
		if d.ClusterScore != nil {
			all = append(all, fmt.Sprintf("%s%s affinity %d spread %d", sign, d.ClusterName, *d.ClusterScore.AffinityScore, *d.ClusterScore.TopologySpreadScore))
		} else {
			all = append(all, sign+d.ClusterName)
		}
	}
	return all, err
}

// decisionsOn are the decisions for members of a spec. Other members are rejected by the label that
// separates specs.
func decisionsOn(ctx context.Context, snapshot, spec string) ([]string, error) {
	all, err := decided(ctx, snapshot)
	return slices.DeleteFunc(all, func(text string) bool { return len(text) < len(spec)+2 || text[1:len(spec)+2] != spec+"-" }), err
}

var _ = Describe("The scheduler", func() {
	It("picks the best N, the larger name of equals, and reports why others are not picked", func(ctx SpecContext) {
		shop(ctx, "sa-shop")
		joinAll(ctx, "sa", nil, nil, nil, nil)
		edit(ctx, "sa-4", taint("full"))
		place(ctx, "sa", "sa-shop", picking(2, nil))
		expectAvailable(ctx, "sa", "0")
		expectOn(ctx, "sa", "sa-2", "sa-3")

		Expect(decisionsOn(ctx, "sa-0", "sa")).To(Equal([]string{
			"+sa-2 affinity 0 spread 0", "+sa-3 affinity 0 spread 0", "-sa-1 affinity 0 spread 0", "-sa-4",
		}))
		s := policySnapshot(ctx, "sa-0")
		Expect(s.Status.TargetClusters[0].Reason).To(Equal(
			`Successfully scheduled resources for placement in "sa-2" (affinity score: 0, topology spread score: 0): picked by scheduling policy`))
		Expect(s.Status.TargetClusters[2].Reason).To(Equal(`Cluster "sa-1" does not score high enough (affinity score: 0, topology spread score: 0)`))
		Expect(s.Annotations).To(HaveKeyWithValue("kubernetes-fleet.io/number-of-clusters", "2"))
		bindings, err := bindingsOf(ctx, "sa")
		Expect(err).NotTo(HaveOccurred())
		Expect(bindings["sa-3"].Spec.ClusterDecision).To(Equal(s.Status.TargetClusters[1]))
	})

	It("adds members when N grows, and removes members when it shrinks", func(ctx SpecContext) {
		shop(ctx, "sb-shop")
		joinAll(ctx, "sb", nil, nil, nil)
		place(ctx, "sb", "sb-shop", picking(2, nil))
		expectAvailable(ctx, "sb", "0")
		expectOn(ctx, "sb", "sb-2", "sb-3")
		before := map[string]types.UID{}
		for _, member := range []string{"sb-2", "sb-3"} {
			work, err := workOf(ctx, member, "sb")
			Expect(err).NotTo(HaveOccurred())
			before[member] = work.UID
		}

		By("raising N")
		respec(ctx, "sb", picking(3, nil))
		expectOn(ctx, "sb", "sb-1", "sb-2", "sb-3")
		expectAvailable(ctx, "sb", "0")
		for member, uid := range before {
			work, err := workOf(ctx, member, "sb")
			Expect(err).NotTo(HaveOccurred())
			Expect(work.UID).To(Equal(uid))
			Expect(work.Generation).To(BeEquivalentTo(1))
		}
		var snapshots placementv1beta1.ClusterSchedulingPolicySnapshotList
		Expect(hub.List(ctx, &snapshots, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "sb"})).To(Succeed())
		Expect(snapshots.Items).To(HaveLen(1), "scaling creates no new policy snapshot")

		By("lowering N: the smaller name of equals is removed first")
		respec(ctx, "sb", picking(1, nil))
		expectOn(ctx, "sb", "sb-3")
		Eventually(func() error { _, err := workOf(ctx, "sb-2", "sb"); return client.IgnoreNotFound(err) }).WithTimeout(soon).Should(Succeed())
		Eventually(func() bool { _, err := workOf(ctx, "sb-2", "sb"); return err != nil }).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "sb", "0")
		Expect(decided(ctx, "sb-0")).To(Equal([]string{"+sb-3 affinity 0 spread 0"}))

		By("setting N to zero")
		respec(ctx, "sb", picking(0, nil))
		Eventually(placedOn).WithContext(ctx).WithArguments("sb").WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	})

	It("filters and ranks by properties", func(ctx SpecContext) {
		const zones, cost = "example.com/zone-count", "example.com/cost"
		shop(ctx, "sc-shop")
		joinAll(ctx, "sc", nil, nil, nil, nil)
		for i, value := range []string{"3", "3", "1", "4"} {
			report(ctx, fmt.Sprintf("sc-%d", i+1), withProperty(zones, value))
		}
		for i, value := range []string{"200m", "100m", "50m", "400m"} {
			report(ctx, fmt.Sprintf("sc-%d", i+1), withProperty(cost, value))
		}
		place(ctx, "sc", "sc-shop", picking(2, func(policy *placementv1beta1.PlacementPolicy) {
			terms := policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms
			terms[0].PropertySelector = &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
				{Name: zones, Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}},
			}}
			policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []placementv1beta1.PreferredClusterSelector{{
				Weight: 70, Preference: placementv1beta1.ClusterSelectorTerm{PropertySorter: &placementv1beta1.PropertySorter{Name: cost, SortOrder: placementv1beta1.Ascending}},
			}}
		}))
		expectAvailable(ctx, "sc", "0")
		expectOn(ctx, "sc", "sc-1", "sc-2")
		Expect(decisionsOn(ctx, "sc-0", "sc")).To(Equal([]string{
			"+sc-1 affinity 40 spread 0", "+sc-2 affinity 60 spread 0", "-sc-4 affinity 0 spread 0", "-sc-3",
		}))
	})

	It("requires spot pools and spreads over zones by properties of Cluster API", func(ctx SpecContext) {
		const spot, zone = "infrastructure.fleetgate.io/spot-pool-count", "topology.kubernetes.io/zone"
		shop(ctx, "sz-shop")
		in := func(name string) map[string]string { return map[string]string{zone: name} }
		joinAll(ctx, "sz", in("sz-b"), in("sz-a"), in("sz-a"), in("sz-c"))
		for i, count := range []string{"1", "2", "1", "0"} {
			report(ctx, fmt.Sprintf("sz-%d", i+1), withProperty(spot, count))
		}
		place(ctx, "sz", "sz-shop", picking(2, func(policy *placementv1beta1.PlacementPolicy) {
			terms := policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms
			terms[0].PropertySelector = &placementv1beta1.PropertySelector{MatchExpressions: []placementv1beta1.PropertySelectorRequirement{
				{Name: spot, Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"0"}},
			}}
			policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{
				{TopologyKey: zone, MaxSkew: new(int32(1)), WhenUnsatisfiable: placementv1beta1.DoNotSchedule},
			}
		}))
		// sz-4 has no spot pool. The last two of the others would be picked, but they are in one zone.
		expectOn(ctx, "sz", "sz-1", "sz-3")
	})

	It("prefers labels without requiring them", func(ctx SpecContext) {
		shop(ctx, "sd-shop")
		critical := map[string]string{"critical-level": "1"}
		joinAll(ctx, "sd", critical, nil, nil)
		place(ctx, "sd", "sd-shop", picking(2, func(policy *placementv1beta1.PlacementPolicy) {
			policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []placementv1beta1.PreferredClusterSelector{
				{Weight: 20, Preference: placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: critical}}},
			}
		}))
		expectAvailable(ctx, "sd", "0")
		expectOn(ctx, "sd", "sd-1", "sd-3")
	})

	It("spreads over regions, with DoNotSchedule and ScheduleAnyway", func(ctx SpecContext) {
		shop(ctx, "se-shop")
		east, west := map[string]string{"region": "se-east"}, map[string]string{"region": "se-west"}
		joinAll(ctx, "se", east, west, west, west)
		spread := func(action placementv1beta1.UnsatisfiableConstraintAction) func(*placementv1beta1.PlacementPolicy) {
			return func(policy *placementv1beta1.PlacementPolicy) {
				policy.TopologySpreadConstraints = []placementv1beta1.TopologySpreadConstraint{
					{TopologyKey: "region", MaxSkew: new(int32(1)), WhenUnsatisfiable: action},
				}
			}
		}
		place(ctx, "se", "se-shop", picking(4, spread(placementv1beta1.DoNotSchedule)))
		expectOn(ctx, "se", "se-1", "se-3", "se-4")
		Eventually(summary).WithContext(ctx).WithArguments("se").WithTimeout(soon).WithPolling(often).Should(ContainElement("Scheduled=False/SchedulingPolicyUnfulfilled"))
		Expect(decisionsOn(ctx, "se-0", "se")).To(ContainElement("-se-2"))

		By("using ScheduleAnyway")
		respec(ctx, "se", picking(4, spread(placementv1beta1.ScheduleAnyway)))
		expectOn(ctx, "se", "se-1", "se-2", "se-3", "se-4")
		expectAvailable(ctx, "se", "0")
		Expect(decided(ctx, "se-1")).To(ContainElement("+se-2 affinity 0 spread -1000"))
	})

	It("excludes tainted members unless the taint is tolerated", func(ctx SpecContext) {
		shop(ctx, "sf-shop")
		joinAll(ctx, "sf", nil, nil)
		edit(ctx, "sf-2", taint("maintenance"))
		place(ctx, "sf", "sf-shop", nil)
		expectAvailable(ctx, "sf", "0")
		expectOn(ctx, "sf", "sf-1")
		expectStill(ctx, "sf", "sf-1")

		By("tolerating the taint")
		respec(ctx, "sf", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy.Tolerations = []placementv1beta1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists}}
		})
		expectOn(ctx, "sf", "sf-1", "sf-2")

		By("removing a taint")
		join(ctx, "sf-3", map[string]string{fleetLabel: "sf"})
		agent("sf-3")
		expectOn(ctx, "sf", "sf-1", "sf-2", "sf-3")
	})

	It("places nothing on an unapproved member, and everything once it is approved", func(ctx SpecContext) {
		shop(ctx, "su-shop")
		shop(ctx, "suf-shop")
		joinAll(ctx, "su", nil, nil)
		edit(ctx, "su-2", taint(clusterv1beta1.TaintUnapproved))
		place(ctx, "su", "su-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy.Tolerations = []placementv1beta1.Toleration{{Operator: corev1.TolerationOpExists}}
		})
		place(ctx, "suf", "suf-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"su-1", "su-2"}}
		})
		for _, placement := range []string{"su", "suf"} {
			expectOn(ctx, placement, "su-1")
			expectStill(ctx, placement, "su-1")
		}

		edit(ctx, "su-2", func(member *clusterv1beta1.MemberCluster) { member.Spec.Taints = nil })
		for _, placement := range []string{"su", "suf"} {
			expectOn(ctx, placement, "su-1", "su-2")
		}
	})

	It("reports missing clusters, and picks one as soon as possible", func(ctx SpecContext) {
		shop(ctx, "sg-shop")
		joinAll(ctx, "sg", nil, nil)
		edit(ctx, "sg-1", taint("full"))
		place(ctx, "sg", "sg-shop", picking(2, nil))
		expectOn(ctx, "sg", "sg-2")
		Eventually(func(g Gomega) {
			crp, err := statusOf(ctx, "sg")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation)).To(Equal([]string{
				"Scheduled=False/SchedulingPolicyUnfulfilled", "RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified",
				"WorkSynchronized=True/WorkSynchronized", "Applied=True/ApplySucceeded", "Available=True/ResourceAvailable",
			}))
			g.Expect(crp.Status.Conditions[0].Message).To(And(
				HavePrefix("could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead: 1 of "),
				ContainSubstring("1 tainted full:NoSchedule")))
			statuses := crp.Status.PlacementStatuses
			g.Expect(statuses).To(HaveLen(2))
			g.Expect(statuses[1].ClusterName).To(BeEmpty())
			g.Expect(brief(statuses[1].Conditions, "", crp.Generation)).To(Equal([]string{"Scheduled=False/ScheduleFailed"}))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())

		edit(ctx, "sg-1", func(member *clusterv1beta1.MemberCluster) { member.Spec.Taints = nil })
		expectOn(ctx, "sg", "sg-1", "sg-2")
		expectAvailable(ctx, "sg", "0")
	})

	It("replaces a member that leaves, and changes no other", func(ctx SpecContext) {
		shop(ctx, "sh-shop")
		joinAll(ctx, "sh", nil, nil, nil)
		place(ctx, "sh", "sh-shop", picking(2, nil))
		expectAvailable(ctx, "sh", "0")
		expectOn(ctx, "sh", "sh-2", "sh-3")
		before, err := workOf(ctx, "sh-3", "sh")
		Expect(err).NotTo(HaveOccurred())

		Expect(hub.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "sh-2"}})).To(Succeed())
		expectOn(ctx, "sh", "sh-1", "sh-3")
		expectAvailable(ctx, "sh", "0")
		after, err := workOf(ctx, "sh-3", "sh")
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Generation).To(Equal(before.Generation))
	})

	It("moves nothing for later changes of members and resources", func(ctx SpecContext) {
		shop(ctx, "si-shop")
		joinAll(ctx, "si", nil, nil, nil)
		place(ctx, "si", "si-shop", picking(2, func(policy *placementv1beta1.PlacementPolicy) {
			policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []placementv1beta1.PreferredClusterSelector{
				{Weight: 50, Preference: placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"best": "yes"}}}},
			}
		}))
		expectAvailable(ctx, "si", "0")
		expectOn(ctx, "si", "si-2", "si-3")
		before := policySnapshot(ctx, "si-0")

		By("adding a better member, a taint, removing a label, an unhealthy and a disconnected member")
		edit(ctx, "si-1", func(member *clusterv1beta1.MemberCluster) { member.Labels["best"] = "yes" })
		edit(ctx, "si-2", taint("full"))
		edit(ctx, "si-3", func(member *clusterv1beta1.MemberCluster) { delete(member.Labels, fleetLabel) })
		report(ctx, "si-2", func(status *clusterv1beta1.MemberClusterStatus) {
			status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(time.Now().Add(-time.Hour))
			status.AgentStatus[0].Conditions[1].Status = metav1.ConditionFalse
		})
		By("a change of resources")
		changeSettings(ctx, "si-shop", "green")
		expectAvailable(ctx, "si", "1")
		expectStill(ctx, "si", "si-2", "si-3")
		after := policySnapshot(ctx, "si-0")
		Expect(after.Status.TargetClusters).To(Equal(before.Status.TargetClusters))
	})

	It("keeps equally good members after a change of policy, and some old policies", func(ctx SpecContext) {
		shop(ctx, "sj-shop")
		joinAll(ctx, "sj", nil, nil, nil)
		edit(ctx, "sj-3", taint("full"))
		place(ctx, "sj", "sj-shop", picking(1, func(policy *placementv1beta1.PlacementPolicy) {}))
		expectAvailable(ctx, "sj", "0")
		expectOn(ctx, "sj", "sj-2")
		edit(ctx, "sj-3", func(member *clusterv1beta1.MemberCluster) { member.Spec.Taints = nil })

		By("changing to an equivalent policy")
		prefer := func(weight int32, labels map[string]string) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				spec.RevisionHistoryLimit = new(int32(2))
				spec.Policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []placementv1beta1.PreferredClusterSelector{
					{Weight: weight, Preference: placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}},
				}
			}
		}
		respec(ctx, "sj", prefer(1, map[string]string{"nobody": "has-this"}))
		Eventually(func() ([]string, error) { return decisionsOn(ctx, "sj-1", "sj") }).WithTimeout(soon).WithPolling(often).Should(ContainElement("+sj-2 affinity 0 spread 0"))
		expectStill(ctx, "sj", "sj-2")

		By("changing to a policy that prefers another member")
		edit(ctx, "sj-1", func(member *clusterv1beta1.MemberCluster) { member.Labels["best"] = "yes" })
		respec(ctx, "sj", prefer(5, map[string]string{"best": "yes"}))
		expectOn(ctx, "sj", "sj-1")
		expectAvailable(ctx, "sj", "0")

		By("keeping two policies")
		Eventually(func(g Gomega) {
			var list placementv1beta1.ClusterSchedulingPolicySnapshotList
			g.Expect(hub.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "sj"})).To(Succeed())
			var names []string
			for _, s := range list.Items {
				names = append(names, s.Name+" "+s.Labels[placementv1beta1.IsLatestSnapshotLabel])
			}
			g.Expect(names).To(ConsistOf("sj-1 false", "sj-2 true"))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})

	It("takes nothing from unreachable members when the policy changes", func(ctx SpecContext) {
		shop(ctx, "sm-shop")
		joinAll(ctx, "sm", nil, nil, nil)
		place(ctx, "sm", "sm-shop", nil)
		place(ctx, "smn", "sm-shop", func(spec *placementv1beta1.PlacementSpec) {
			picking(2, nil)(spec)
			spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector.MatchLabels[fleetLabel] = "sm"
		})
		expectAvailable(ctx, "sm", "0")
		expectOn(ctx, "sm", "sm-1", "sm-2", "sm-3")
		expectOn(ctx, "smn", "sm-2", "sm-3")
		for _, member := range []string{"sm-1", "sm-2", "sm-3"} {
			report(ctx, member, func(status *clusterv1beta1.MemberClusterStatus) {
				status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(time.Now().Add(-time.Hour))
			})
		}
		tolerate := func(key string) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				spec.Policy.Tolerations = append(spec.Policy.Tolerations, placementv1beta1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
			}
		}

		By("changing both policies while no member has a heartbeat")
		for name, members := range map[string][]string{"sm": {"sm-1", "sm-2", "sm-3"}, "smn": {"sm-2", "sm-3"}} {
			respec(ctx, name, tolerate("full"))
			Eventually(func() ([]string, error) { return decisionsOn(ctx, name+"-1", "sm") }).WithTimeout(soon).WithPolling(often).Should(ContainElement(HavePrefix("+sm-2")))
			expectStill(ctx, name, members...)
		}

		By("excluding one of them by a label, which counts as before")
		edit(ctx, "sm-1", func(member *clusterv1beta1.MemberCluster) { delete(member.Labels, fleetLabel) })
		respec(ctx, "sm", tolerate("other"))
		expectOn(ctx, "sm", "sm-2", "sm-3")
	})

	It("does not change its decision when the gateway restarts", func(ctx SpecContext) {
		shop(ctx, "sk-shop")
		joinAll(ctx, "sk", nil, nil)
		place(ctx, "sk", "sk-shop", picking(1, nil))
		expectAvailable(ctx, "sk", "0")
		before := policySnapshot(ctx, "sk-0").ResourceVersion
		gateway.stop()
		gateway = startGateway()
		Consistently(func() string { return policySnapshot(ctx, "sk-0").ResourceVersion }).WithTimeout(time.Second).Should(Equal(before))
	})

	It("selects every member without an affinity", func(ctx SpecContext) {
		shop(ctx, "sl-shop")
		joinAll(ctx, "sl", nil, nil)
		place(ctx, "sl", "sl-shop", func(spec *placementv1beta1.PlacementSpec) { spec.Policy = nil })
		Eventually(placedOn).WithContext(ctx).WithArguments("sl").WithTimeout(soon).WithPolling(often).Should(ContainElements("sl-1", "sl-2"))
	})
})
