// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A placement", func() {
	It("selects two of three members, updates, scales up and down, and is deleted", func(ctx SpecContext) {
		shop(ctx, "pa")
		place(ctx, "pa", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(2))}
		})
		Eventually(colours).WithContext(ctx).WithArguments("pa").Should(Equal("- red red"), "the larger names win")
		Eventually(available).WithContext(ctx).WithArguments("pa").Should(BeTrue())
		paint(ctx, "pa", "green")
		Eventually(colours).WithContext(ctx).WithArguments("pa").Should(Equal("- green green"))

		By("selecting all three")
		respec(ctx, "pa", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.NumberOfClusters = new(int32(3)) })
		Eventually(colours).WithContext(ctx).WithArguments("pa").Should(Equal("green green green"))

		By("selecting one")
		respec(ctx, "pa", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.NumberOfClusters = new(int32(1)) })
		Eventually(colours).WithContext(ctx).WithArguments("pa").Should(Equal("- - green"), "the smaller names go first")
		Eventually(available).WithContext(ctx).WithArguments("pa").Should(BeTrue())
	})

	It("is evicted from a tainted member and moves to another", func(ctx SpecContext) {
		shop(ctx, "pb")
		place(ctx, "pb", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(1))}
		})
		Eventually(colours).WithContext(ctx).WithArguments("pb").Should(Equal("- - red"))
		Eventually(available).WithContext(ctx).WithArguments("pb").Should(BeTrue())
		taint(ctx, "member-3")
		evict(ctx, "pb-away", "pb", "member-3")
		Eventually(colours).WithContext(ctx).WithArguments("pb").Should(Equal("- red -"))
		Eventually(available).WithContext(ctx).WithArguments("pb").Should(BeTrue())
	})
})
