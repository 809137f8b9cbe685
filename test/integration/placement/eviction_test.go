// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/failover"
)

// evict creates an eviction and returns its name.
func evict(ctx context.Context, placement, member string) string {
	GinkgoHelper()
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{GenerateName: placement + "-"},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: member},
	}
	Expect(hub.Create(ctx, eviction)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, eviction))).To(Succeed()) })
	return eviction.Name
}

// answer is an eviction's conditions, with their messages.
func answer(ctx context.Context, name string) ([]string, error) {
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, eviction)
	all := brief(eviction.Status.Conditions, "", eviction.Generation)
	for i := range all {
		all[i] += ": " + eviction.Status.Conditions[i].Message
	}
	return all, err
}

func expectAnswer(ctx context.Context, name string, conditions ...string) {
	GinkgoHelper()
	Eventually(answer).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(Equal(conditions))
}

const (
	evictionValid    = "Valid=True/ClusterResourcePlacementEvictionValid: Eviction is valid"
	evictionExecuted = "Executed=True/ClusterResourcePlacementEvictionExecuted: "
	evictionBlocked  = "Executed=False/ClusterResourcePlacementEvictionNotExecuted: "
)

// annotate sets an annotation of a placement.
func annotate(ctx context.Context, name, key, value string) {
	GinkgoHelper()
	crp, err := statusOf(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	before := crp.DeepCopy()
	metav1.SetMetaDataAnnotation(&crp.ObjectMeta, key, value)
	Expect(hub.Patch(ctx, crp, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("An eviction", func() {
	It("removes a placement from a tainted member, and another one is picked", func(ctx SpecContext) {
		shop(ctx, "va-shop")
		joinAll(ctx, "va", nil, nil, nil)
		place(ctx, "va", "va-shop", picking(2, nil))
		expectAvailable(ctx, "va", "0")
		expectOn(ctx, "va", "va-2", "va-3")

		edit(ctx, "va-3", taint("maintenance"))
		expectAnswer(ctx, evict(ctx, "va", "va-3"), evictionValid,
			evictionExecuted+"Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified")
		expectOn(ctx, "va", "va-1", "va-2")
		Eventually(func() bool { _, err := workOf(ctx, "va-3", "va"); return err != nil }).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "va", "0")
	})

	It("returns to the member if nothing prevents it", func(ctx SpecContext) {
		shop(ctx, "vb-shop")
		joinAll(ctx, "vb", nil)
		place(ctx, "vb", "vb-shop", nil)
		expectAvailable(ctx, "vb", "0")
		before, err := workOf(ctx, "vb-1", "vb")
		Expect(err).NotTo(HaveOccurred())
		expectAnswer(ctx, evict(ctx, "vb", "vb-1"), evictionValid,
			evictionExecuted+"Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified")
		Eventually(func() (types.UID, error) {
			work, err := workOf(ctx, "vb-1", "vb")
			return work.UID, client.IgnoreNotFound(err)
		}).WithTimeout(soon).WithPolling(often).ShouldNot(Or(BeEmpty(), Equal(before.UID)))
		expectAvailable(ctx, "vb", "0")
	})

	It("respects the budget", func(ctx SpecContext) {
		shop(ctx, "vc-shop")
		joinAll(ctx, "vc", nil, nil)
		place(ctx, "vc", "vc-shop", picking(2, nil))
		expectAvailable(ctx, "vc", "0")
		two := intstr.FromInt32(2)
		budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "vc"},
			Spec: placementv1beta1.PlacementDisruptionBudgetSpec{MinAvailable: &two}}
		Expect(hub.Create(ctx, budget)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, budget)).To(Succeed()) })
		blocked := evict(ctx, "vc", "vc-1")
		expectAnswer(ctx, blocked, evictionValid,
			evictionBlocked+"Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2")
		expectStill(ctx, "vc", "vc-1", "vc-2")

		By("counting a member without heartbeat as unavailable")
		joined := func(is metav1.ConditionStatus) {
			report(ctx, "vc-2", func(status *clusterv1beta1.MemberClusterStatus) {
				meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionJoined, Status: is, Reason: "Test"})
			})
		}
		joined(metav1.ConditionUnknown)
		Eventually(saidOf(ctx, "vc", "vc-2", placementv1beta1.ConditionAvailable)).WithTimeout(soon).WithPolling(often).Should(
			And(HavePrefix("True "), ContainSubstring(`, as last reported: member "vc-2" has had no heartbeat since`)))
		one := intstr.FromInt32(1)
		budget.Spec.MinAvailable = &one
		Expect(hub.Update(ctx, budget)).To(Succeed())
		expectAnswer(ctx, evict(ctx, "vc", "vc-1"), evictionValid,
			evictionBlocked+"Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 1, totalPlacements: 2")
		joined(metav1.ConditionTrue)
		Eventually(saidOf(ctx, "vc", "vc-2", placementv1beta1.ConditionAvailable)).WithTimeout(soon).WithPolling(often).ShouldNot(ContainSubstring("as last reported"))

		By("requesting both concurrently when one is allowed")
		edit(ctx, "vc-1", taint("full"))
		edit(ctx, "vc-2", taint("full"))
		half := intstr.FromString("50%")
		budget.Spec.MinAvailable = &half
		Expect(hub.Update(ctx, budget)).To(Succeed())
		first, second := evict(ctx, "vc", "vc-1"), evict(ctx, "vc", "vc-2")
		Eventually(func(g Gomega) {
			executed := 0
			for _, name := range []string{first, second} {
				conditions, err := answer(ctx, name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(conditions).To(HaveLen(2))
				if strings.HasPrefix(conditions[1], "Executed=True") {
					executed++
				}
			}
			g.Expect(executed).To(Equal(1))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("not changing a decision")
		expectAnswer(ctx, blocked, evictionValid,
			evictionBlocked+"Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget, availablePlacements: 2, totalPlacements: 2")
	})

	It("reports what it cannot evict", func(ctx SpecContext) {
		shop(ctx, "vd-shop")
		joinAll(ctx, "vd", nil)
		const invalid = "Valid=False/ClusterResourcePlacementEvictionInvalid: "
		expectAnswer(ctx, evict(ctx, "vd", "vd-1"), invalid+"Failed to find ClusterResourcePlacement targeted by eviction")
		place(ctx, "vd", "vd-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"vd-1"}}
		})
		expectAvailable(ctx, "vd", "0")
		expectAnswer(ctx, evict(ctx, "vd", "vd-1"), invalid+"Found ClusterResourcePlacement with PickFixed placement type targeted by eviction")
		place(ctx, "vdd", "vd-shop", nil)
		expectAnswer(ctx, evict(ctx, "vdd", "vd-1"), invalid+"Failed to find scheduler decision for placement in cluster targeted by eviction")
	})
})

// expectSuspended waits for the reason why a placement stays; "" means that there is none.
func expectSuspended(ctx context.Context, name, reason string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		crp, err := statusOf(ctx, name)
		if err != nil {
			return "", err
		}
		if c := meta.FindStatusCondition(crp.Status.Conditions, placementv1beta1.ConditionFailoverSuspended); c != nil {
			return c.Reason, nil
		}
		return "", nil
	}).WithTimeout(soon).WithPolling(often).Should(Equal(reason))
}

var _ = Describe("Failover", func() {
	silentFor := func(ctx context.Context, member string, silence time.Duration) {
		GinkgoHelper()
		report(ctx, member, func(status *clusterv1beta1.MemberClusterStatus) {
			status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(time.Now().Add(-silence))
		})
	}

	It("leaves a member without heartbeat after the time, and not before", func(ctx SpecContext) {
		shop(ctx, "wa-shop")
		joinAll(ctx, "wa", nil, nil, nil)
		place(ctx, "wa", "wa-shop", picking(2, nil))
		expectAvailable(ctx, "wa", "0")
		expectOn(ctx, "wa", "wa-2", "wa-3")

		By("staying without an annotation")
		silentFor(ctx, "wa-3", time.Hour)
		expectStill(ctx, "wa", "wa-2", "wa-3")

		By("staying while there is time left")
		silentFor(ctx, "wa-3", 290*time.Second)
		annotate(ctx, "wa", failover.AfterAnnotation, "300")
		expectStill(ctx, "wa", "wa-2", "wa-3")

		By("leaving after the time: a missing heartbeat is no event")
		expectOn(ctx, "wa", "wa-1", "wa-2")
		expectAvailable(ctx, "wa", "0")
	})

	It("does not return to a member without heartbeat, but to one that recovers", func(ctx SpecContext) {
		shop(ctx, "wb-shop")
		joinAll(ctx, "wb", nil, nil)
		place(ctx, "wb", "wb-shop", picking(1, nil))
		expectAvailable(ctx, "wb", "0")
		expectOn(ctx, "wb", "wb-2")
		silentFor(ctx, "wb-2", 100*time.Second) // Not long enough for the scheduler alone.
		annotate(ctx, "wb", failover.AfterAnnotation, "60")
		expectOn(ctx, "wb", "wb-1")
		expectAvailable(ctx, "wb", "0")

		By("staying while no other member has a heartbeat")
		silentFor(ctx, "wb-1", 100*time.Second)
		expectSuspended(ctx, "wb", placementv1beta1.ReasonNoMemberToTakeOver)
		expectStill(ctx, "wb", "wb-1")
		silentFor(ctx, "wb-2", 0)
		expectOn(ctx, "wb", "wb-2")
		expectSuspended(ctx, "wb", "")
	})

	It("stays on a disconnected member if the placement is on all eligible members", func(ctx SpecContext) {
		shop(ctx, "we-shop")
		joinAll(ctx, "we", nil, nil)
		place(ctx, "we", "we-shop", nil)
		annotate(ctx, "we", failover.AfterAnnotation, "60")
		expectAvailable(ctx, "we", "0")
		silentFor(ctx, "we-1", 100*time.Second)
		expectSuspended(ctx, "we", placementv1beta1.ReasonNoMemberToTakeOver)
		expectStill(ctx, "we", "we-1", "we-2")
	})

	It("stays on a connected member with an old heartbeat, and leaves when the member disconnects", func(ctx SpecContext) {
		joined := func(is metav1.ConditionStatus, shows time.Duration) {
			GinkgoHelper()
			report(ctx, "wd-2", func(status *clusterv1beta1.MemberClusterStatus) {
				status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(time.Now().Add(-shows))
				meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionJoined, Status: is, Reason: "Test"})
			})
		}
		shop(ctx, "wd-shop")
		joinAll(ctx, "wd", nil, nil)
		joined(metav1.ConditionTrue, 6*time.Minute) // Too old, if the member were disconnected.
		place(ctx, "wd", "wd-shop", picking(1, nil))
		annotate(ctx, "wd", failover.AfterAnnotation, "60")
		expectAvailable(ctx, "wd", "0")
		expectStill(ctx, "wd", "wd-2")

		joined(metav1.ConditionUnknown, 4*time.Minute)
		expectOn(ctx, "wd", "wd-1")
		joined(metav1.ConditionTrue, 0)
		expectStill(ctx, "wd", "wd-1")
	})

	It("leaves a member with a configured taint, within the budget", func(ctx SpecContext) {
		shop(ctx, "wc-shop")
		joinAll(ctx, "wc", nil, nil, nil)
		place(ctx, "wc", "wc-shop", picking(2, func(policy *placementv1beta1.PlacementPolicy) {
			policy.Tolerations = []placementv1beta1.Toleration{{Operator: corev1.TolerationOpExists}}
		}))
		expectAvailable(ctx, "wc", "0")
		expectOn(ctx, "wc", "wc-2", "wc-3")
		none := intstr.FromInt32(0)
		budget := &placementv1beta1.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "wc"},
			Spec: placementv1beta1.PlacementDisruptionBudgetSpec{MaxUnavailable: &none}}
		Expect(hub.Create(ctx, budget)).To(Succeed())
		annotate(ctx, "wc", failover.TaintsAnnotation, "maintenance")

		edit(ctx, "wc-3", taint("maintenance"))
		Eventually(func() ([]string, error) {
			var list placementv1beta1.ClusterResourcePlacementEvictionList
			err := hub.List(ctx, &list, client.MatchingLabels{failover.Label: "wc"})
			if len(list.Items) == 0 {
				return nil, err
			}
			return brief(list.Items[0].Status.Conditions, "", list.Items[0].Generation), err
		}).WithTimeout(soon).WithPolling(often).Should(ContainElement("Executed=False/ClusterResourcePlacementEvictionNotExecuted"))
		expectStill(ctx, "wc", "wc-2", "wc-3")

		By("retrying once the budget allows it")
		Expect(hub.Delete(ctx, budget)).To(Succeed())
		Eventually(placedOn).WithContext(ctx).WithArguments("wc").WithTimeout(60 * time.Second).WithPolling(often).Should(Equal([]string{"wc-1", "wc-2"}))
	})
})
