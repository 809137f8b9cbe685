// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

// fail reports a failure in clusters by a condition rule.
func fail(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet, clusters ...string) {
	GinkgoHelper()
	for _, cluster := range clusters {
		report(ctx, set, cluster, map[string]metav1.ConditionStatus{
			workv1.ConditionApplied: yes, workv1.ConditionProgressing: yes, workv1.ConditionDegraded: yes,
		})
	}
}

var _ = Describe("A rollout", func() {
	It("updates a limited number of clusters at a time, also for later templates", func(ctx SpecContext) {
		b := newBed(ctx, 5)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 2, nil))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[:2]...)))
		Consistently(colours(ctx, set)).Should(HaveLen(2))
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))

		By("Applied and Available, without a rule")
		done(ctx, set, b.clusters[0])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[:3]...)))

		By("a rule, which takes precedence over these")
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{workv1.ConditionApplied: yes, workv1.ConditionAvailable: yes, workv1.ConditionProgressing: yes})
		Consistently(colours(ctx, set)).Should(HaveLen(3))
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{workv1.ConditionProgressing: no})
		done(ctx, set, b.clusters[2])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		done(ctx, set, b.clusters[3:]...)
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))

		By("another template")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template("red") })
		Eventually(colours(ctx, set)).Should(ContainElements(have("red", b.clusters[:2]...)))
		Consistently(colours(ctx, set)).Should(ContainElements(have("blue", b.clusters[2:]...)))
		Eventually(said(ctx, set)).Should(ContainElement(progressing))
		Eventually(summary(ctx, set)).Should(HaveField("Total", 2))
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{workv1.ConditionProgressing: no})
		done(ctx, set, b.clusters[:2]...)
		Eventually(colours(ctx, set)).Should(ContainElements(have("red", b.clusters[:4]...)))
		done(ctx, set, b.clusters[2:4]...)
		Eventually(colours(ctx, set)).Should(Equal(have("red", b.clusters...)))
		done(ctx, set, b.clusters[4])
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
	})

	It("stops when too many clusters failed and continues when they recover", func(ctx SpecContext) {
		b := newBed(ctx, 4)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 3, func(c *clusterv1alpha1.RolloutProgressiveConfig) { c.MaxFailures = intstr.FromInt32(1) }))
		Eventually(colours(ctx, set)).Should(HaveLen(3))
		fail(ctx, set, b.clusters[0])
		report(ctx, set, b.clusters[1], map[string]metav1.ConditionStatus{workv1.ConditionApplied: no})
		done(ctx, set, b.clusters[2])
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementRolledOut)).Should(ContainSubstring("has stopped"))
		Consistently(colours(ctx, set)).Should(HaveLen(3))
		done(ctx, set, b.clusters[1])
		Eventually(colours(ctx, set)).Should(HaveLen(4))
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementRolledOut)).Should(BeEmpty(), "the status is written after the works")
	})

	It("waits until success has lasted", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 1, func(c *clusterv1alpha1.RolloutProgressiveConfig) {
			c.MinSuccessTime = metav1.Duration{Duration: 3 * time.Second}
		}))
		Eventually(colours(ctx, set)).Should(HaveLen(1))
		done(ctx, set, b.clusters[0])
		Consistently(colours(ctx, set)).Should(HaveLen(1))
		Eventually(colours(ctx, set)).Should(HaveLen(2))
	})

	It("continues without clusters that exceed the deadline", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 1, func(c *clusterv1alpha1.RolloutProgressiveConfig) {
			c.ProgressDeadline, c.MaxFailures = "3s", intstr.FromInt32(1)
		}))
		Eventually(colours(ctx, set)).Should(HaveLen(1))
		Consistently(colours(ctx, set)).Should(HaveLen(1))
		Eventually(colours(ctx, set)).Should(HaveLen(2))
		Eventually(said(ctx, set)).Should(ContainElement(progressing))
	})

	It("updates the mandatory group first and then group by group", func(ctx SpecContext) {
		b := newBed(ctx, 5)
		b.place(ctx, "p", b.clusters[:2], b.clusters[2:4], b.clusters[4:])
		set := b.set(ctx, "web", workv1alpha1.LocalPlacementReference{Name: "p", RolloutStrategy: clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.RolloutProgressivePerGroup,
			ProgressivePerGroup: &clusterv1alpha1.RolloutPerGroupConfig{MandatoryDecisionGroups: clusterv1alpha1.MandatoryDecisionGroups{
				MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "group-2"}},
			}},
		}})
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[4])))
		Consistently(colours(ctx, set)).Should(HaveLen(1))
		done(ctx, set, b.clusters[4])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0], b.clusters[1], b.clusters[4])))
		done(ctx, set, b.clusters[0])
		Consistently(colours(ctx, set)).Should(HaveLen(3))
		done(ctx, set, b.clusters[1])
		Eventually(colours(ctx, set)).Should(HaveLen(5))
		done(ctx, set, b.clusters[2:4]...)
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		Expect(workIn(ctx, set, b.clusters[0]).Annotations).To(HaveKey(workv1alpha1.GivenAtAnnotation))
	})
})
