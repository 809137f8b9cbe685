// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

var _ = Describe("Changes of selected resources", func() {
	const candidate = "kubernetes-fleet.io/next-resource-snapshot-candidate-detection-time"

	DescribeTable("are delivered together, after the gateway's intervals",
		func(ctx SpecContext, name string, intervals snapshot.Intervals) {
			gateway.stop()
			gateway = startGateway(func(o *placement.Options) { o.SnapshotIntervals = intervals })
			DeferCleanup(func() {
				gateway.stop()
				gateway = startGateway()
			})
			namespace := name + "-shop"
			shop(ctx, namespace)
			joinAll(ctx, name, nil)
			place(ctx, name, namespace, nil)
			expectAvailable(ctx, name, "0")
			revision := func(g Gomega, index string) *placementv1beta1.ClusterResourceSnapshot {
				s := &placementv1beta1.ClusterResourceSnapshot{}
				g.Expect(hub.Get(ctx, types.NamespacedName{Name: name + "-" + index + "-snapshot"}, s)).To(Succeed())
				return s
			}
			Expect(revision(Default, "0").Annotations).NotTo(HaveKey(candidate))

			changeSettings(ctx, namespace, "green")
			var seen time.Time
			Eventually(func(g Gomega) {
				var err error
				seen, err = time.Parse(time.RFC3339, revision(g, "0").Annotations[candidate])
				g.Expect(err).NotTo(HaveOccurred())
			}).WithTimeout(soon).WithPolling(often).Should(Succeed())
			changeSettings(ctx, namespace, "blue")
			expectAvailable(ctx, name, "1")
			Expect(workSays(ctx, name+"-1", name, "blue")()).To(BeTrue())

			var all placementv1beta1.ClusterResourceSnapshotList
			Expect(hub.List(ctx, &all, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name})).To(Succeed())
			Expect(all.Items).To(HaveLen(2), "both changes are in one snapshot")
			first, second := revision(Default, "0").CreationTimestamp.Time, revision(Default, "1").CreationTimestamp.Time
			Expect(second).NotTo(BeTemporally("<", first.Add(intervals.Least)))
			Expect(second).NotTo(BeTemporally("<", seen.Add(intervals.Collection)))
		},
		Entry("after the first change", "xi", snapshot.Intervals{Collection: 8 * time.Second}),
		Entry("after the latest snapshot", "xj", snapshot.Intervals{Least: 20 * time.Second}),
		Entry("after both", "xk", snapshot.Intervals{Least: 5 * time.Second, Collection: 10 * time.Second}),
	)
})
