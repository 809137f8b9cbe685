// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// staged creates a strategy with one stage per label value, in order.
func staged(ctx context.Context, name, label string, stages ...placementv1beta1.StageConfig) {
	GinkgoHelper()
	s := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, stage := range stages {
		stage.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: stage.Name}}
		s.Spec.Stages = append(s.Spec.Stages, stage)
	}
	create(ctx, s)
}

func run(ctx context.Context, name, placement, index string) {
	GinkgoHelper()
	r := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	r.Spec = placementv1beta1.UpdateRunSpec{PlacementName: placement, StagedRolloutStrategyName: placement, ResourceSnapshotIndex: index, State: placementv1beta1.UpdateRunRun}
	create(ctx, r)
}

// succeeded returns the status of the run's condition Succeeded; "" while it runs.
func succeeded(ctx context.Context, name string) (metav1.ConditionStatus, error) {
	r := &placementv1beta1.ClusterStagedUpdateRun{}
	if err := hub.Get(ctx, client.ObjectKey{Name: name}, r); err != nil {
		return "", err
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionUpdateRunSucceeded); c != nil {
		return c.Status, nil
	}
	return "", nil
}

// approve approves the stage that a run waits for.
func approve(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		a := &placementv1beta1.ClusterApprovalRequest{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, a); err != nil {
			return err
		}
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionApprovalRequestApproved, Status: metav1.ConditionTrue, Reason: "LooksGood", ObservedGeneration: a.Generation,
		})
		return hub.Status().Update(ctx, a)
	}).WithContext(ctx).Should(Succeed())
}

func asked(ctx context.Context, name string) error {
	return hub.Get(ctx, client.ObjectKey{Name: name}, &placementv1beta1.ClusterApprovalRequest{})
}

func externally(spec *placementv1beta1.PlacementSpec) {
	spec.Strategy.Type = placementv1beta1.ExternalStrategy
}

var afterwards = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskApproval}}

var _ = Describe("A staged update run", func() {
	It("updates two members one after the other, waits for approval, and rolls back", func(ctx SpecContext) {
		relabel(ctx, "two", map[string]string{"member-1": "canary", "member-2": "production"})
		staged(ctx, "two", "two", placementv1beta1.StageConfig{Name: "canary", AfterStageTasks: afterwards}, placementv1beta1.StageConfig{Name: "production"})
		shop(ctx, "two")
		place(ctx, "two", func(spec *placementv1beta1.PlacementSpec) {
			fixed("member-1", "member-2")(spec)
			externally(spec)
		})

		By("the first run")
		run(ctx, "two-red", "two", "")
		Eventually(colours).WithContext(ctx).WithArguments("two").Should(Equal("red - -"))
		Eventually(asked).WithContext(ctx).WithArguments("two-red-after-canary").Should(Succeed())
		Expect(colours(ctx, "two")).To(Equal("red - -"))
		approve(ctx, "two-red-after-canary")
		Eventually(succeeded).WithContext(ctx).WithArguments("two-red").Should(Equal(metav1.ConditionTrue))
		Expect(colours(ctx, "two")).To(Equal("red red -"))
		Eventually(available).WithContext(ctx).WithArguments("two").Should(BeTrue())

		By("a change, with the gateway killed while the run waits")
		paint(ctx, "two", "green")
		run(ctx, "two-green", "two", "")
		Eventually(asked).WithContext(ctx).WithArguments("two-green-after-canary").Should(Succeed())
		Expect(colours(ctx, "two")).To(Equal("green red -"))
		Expect(running.Gateway.Kill()).To(Succeed())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
		approve(ctx, "two-green-after-canary")
		Eventually(succeeded).WithContext(ctx).WithArguments("two-green").Should(Equal(metav1.ConditionTrue))
		Expect(colours(ctx, "two")).To(Equal("green green -"))

		By("rolling back")
		run(ctx, "two-back", "two", "0")
		approve(ctx, "two-back-after-canary")
		Eventually(succeeded).WithContext(ctx).WithArguments("two-back").Should(Equal(metav1.ConditionTrue))
		Expect(colours(ctx, "two")).To(Equal("red red -"))
	})

	It("updates three members, and removes the resources from one that the policy no longer selects", func(ctx SpecContext) {
		relabel(ctx, "three", map[string]string{"member-1": "first", "member-2": "second", "member-3": "second"})
		staged(ctx, "three", "three", placementv1beta1.StageConfig{Name: "first"},
			placementv1beta1.StageConfig{Name: "second", BeforeStageTasks: afterwards})
		shop(ctx, "three")
		place(ctx, "three", func(spec *placementv1beta1.PlacementSpec) {
			fixed("member-1", "member-2", "member-3")(spec)
			externally(spec)
		})
		run(ctx, "three-red", "three", "")
		Eventually(asked).WithContext(ctx).WithArguments("three-red-before-second").Should(Succeed())
		Expect(colours(ctx, "three")).To(Equal("red - -"))
		approve(ctx, "three-red-before-second")
		Eventually(succeeded).WithContext(ctx).WithArguments("three-red").Should(Equal(metav1.ConditionTrue))
		Expect(colours(ctx, "three")).To(Equal("red red red"))

		By("deselecting one")
		respec(ctx, "three", fixed("member-1", "member-3"))
		paint(ctx, "three", "green")
		run(ctx, "three-green", "three", "")
		approve(ctx, "three-green-before-second")
		Eventually(succeeded).WithContext(ctx).WithArguments("three-green").Should(Equal(metav1.ConditionTrue))
		Expect(colours(ctx, "three")).To(Equal("green - green"))
		Eventually(available).WithContext(ctx).WithArguments("three").Should(BeTrue())
	})
})
