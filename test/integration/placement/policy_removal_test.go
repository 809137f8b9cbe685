// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A new policy that fits no member", func() {
	It("removes nothing from many members until somebody confirms", func(ctx SpecContext) {
		shop(ctx, "pr-shop")
		joinAll(ctx, "pr", nil, nil, nil, nil, nil)
		crp := place(ctx, "pr", "pr-shop", nil)
		expectAvailable(ctx, "pr", "0")
		// indexes are the revisions of the members' Works; a missing Work has none.
		indexes := func(ctx context.Context) ([]string, error) {
			var all []string
			for i := range 5 {
				work, err := workOf(ctx, fmt.Sprintf("pr-%d", i+1), "pr")
				if client.IgnoreNotFound(err) != nil {
					return nil, err
				}
				if err == nil && work.DeletionTimestamp == nil {
					all = append(all, work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel])
				}
			}
			return all, nil
		}

		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
			`{"spec":{"policy":{"affinity":{"clusterAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"clusterSelectorTerms":[{"labelSelector":{"matchLabels":{%q:"misspelled"}}}]}}}}}}`, fleetLabel)))).To(Succeed())
		Eventually(said).WithContext(ctx).WithArguments("pr", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(And(
			ContainSubstring("The policy fits no member, and 5 of 5 members would lose the placement: pr-1, pr-2, pr-3, pr-4, pr-5."), ContainSubstring("kubectl fleetgate confirm pr")))

		By("updating the members meanwhile")
		changeSettings(ctx, "pr-shop", "green")
		Eventually(indexes).WithContext(ctx).WithTimeout(soon).WithPolling(often).Should(HaveExactElements("1", "1", "1", "1", "1"))

		By("confirming")
		confirm(ctx, "pr")
		Eventually(indexes).WithContext(ctx).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
		Eventually(said).WithContext(ctx).WithArguments("pr", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	})
})
