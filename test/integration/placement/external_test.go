// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// rolloutsOf are the members in a placement's status, each with its resource index and its condition
// RolloutStarted.
func rolloutsOf(ctx context.Context, name string) ([]string, error) {
	crp, err := statusOf(ctx, name)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, s := range crp.Status.PlacementStatuses {
		text := fmt.Sprintf("%s@%s", s.ClusterName, s.ObservedResourceIndex)
		if c := meta.FindStatusCondition(s.Conditions, placementv1beta1.ConditionRolloutStarted); c != nil && c.ObservedGeneration == crp.Generation {
			text += fmt.Sprintf(" %s/%s", c.Status, c.Reason)
		}
		all = append(all, text)
	}
	return all, nil
}

func expectRollouts(ctx context.Context, name string, members ...string) {
	GinkgoHelper()
	Eventually(rolloutsOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(Equal(members))
}

var _ = Describe("A placement with strategy External", func() {
	It("reports RolloutStarted Unknown after a change of the policy, until an update run includes the member", func(ctx SpecContext) {
		const started, unknown = " True/RolloutStarted", " Unknown/RolloutStartedUnknown"
		controlled := []string{"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutControlledByExternalController"}
		onMembers := func(names ...string) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: names}
				externally(spec)
			}
		}
		shop(ctx, "uf-shop")
		joinAll(ctx, "uf", tier("prod"), tier("canary"), tier("prod"))
		canary, prod := stageOf("canary", "uf", "canary"), stageOf("prod", "uf", "prod")
		prod.BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskApproval}}
		stagedBy(ctx, "uf", canary, prod)
		place(ctx, "uf", "uf-shop", onMembers("uf-1", "uf-2"))
		Eventually(summary).WithContext(ctx).WithArguments("uf").WithTimeout(soon).WithPolling(often).Should(Equal(controlled))
		expectRollouts(ctx, "uf", "uf-1@"+unknown, "uf-2@"+unknown)
		runOf(ctx, "uf-first", "uf", "", placementv1beta1.UpdateRunRun)
		approve(ctx, request("uf-first-before-prod"))
		expectRun(ctx, named("uf-first"), runSucceeded, "canary"+stageDone+" uf-2"+memberDone, "prod"+stageDone+" uf-1"+memberDone, "deleteStage"+stageDone)
		expectAvailable(ctx, "uf", "0")
		expectRollouts(ctx, "uf", "uf-1@0"+started, "uf-2@0"+started)

		By("adding a member to the policy")
		respec(ctx, "uf", onMembers("uf-1", "uf-2", "uf-3"))
		expectRollouts(ctx, "uf", "uf-1@0"+unknown, "uf-2@0"+unknown, "uf-3@"+unknown)
		Eventually(summary).WithContext(ctx).WithArguments("uf").WithTimeout(soon).WithPolling(often).Should(Equal(controlled))
		runOf(ctx, "uf-second", "uf", "0", placementv1beta1.UpdateRunRun)
		expectRun(ctx, named("uf-second"), runWaits, "canary"+stageDone+" uf-2"+memberDone, "prod"+stageWaits, "deleteStage")
		expectRollouts(ctx, "uf", "uf-1@0"+unknown, "uf-2@0"+started, "uf-3@"+unknown)
		approve(ctx, request("uf-second-before-prod"))
		expectRun(ctx, named("uf-second"), runSucceeded, "canary"+stageDone+" uf-2"+memberDone,
			"prod"+stageDone+" uf-1"+memberDone+" uf-3"+memberDone, "deleteStage"+stageDone)
		expectAvailable(ctx, "uf", "0")

		By("removing members from the policy")
		respec(ctx, "uf", onMembers("uf-3"))
		expectRollouts(ctx, "uf", "uf-3@0"+unknown)
		Eventually(summary).WithContext(ctx).WithArguments("uf").WithTimeout(soon).WithPolling(often).Should(Equal(controlled))
		crp, err := statusOf(ctx, "uf")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.ObservedResourceIndex).To(Equal("0"))
		Expect(crp.Status.SelectedResources).NotTo(BeEmpty())
		runOf(ctx, "uf-third", "uf", "0", placementv1beta1.UpdateRunRun)
		approve(ctx, request("uf-third-before-prod"))
		expectAvailable(ctx, "uf", "0")
		expectRollouts(ctx, "uf", "uf-3@0"+started)
	})
})
