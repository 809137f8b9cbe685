// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("Our Go types", func() {
	selectors := []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "web"}}

	It("leave to the API server what they do not set", func(ctx SpecContext) {
		placement := &placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "defaults-"},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: selectors,
				Policy: &placementv1beta1.PlacementPolicy{
					Tolerations: []placementv1beta1.Toleration{{Key: "a"}},
				},
				Strategy: placementv1beta1.RolloutStrategy{RollingUpdate: &placementv1beta1.RollingUpdateConfig{}},
			},
		}
		Expect(hubClient.Create(ctx, placement)).To(Succeed())

		Expect(placement.Spec.RevisionHistoryLimit).To(Equal(ptr.To[int32](10)))
		Expect(placement.Spec.StatusReportingScope).To(Equal(placementv1beta1.ClusterScopeOnly))
		Expect(placement.Spec.ResourceSelectors[0].SelectionScope).To(Equal(placementv1beta1.NamespaceWithResources))
		Expect(placement.Spec.Policy.PlacementType).To(Equal(placementv1beta1.PickAll))
		Expect(placement.Spec.Policy.Tolerations[0].Operator).To(BeEquivalentTo("Equal"))
		Expect(placement.Spec.Strategy.Type).To(Equal(placementv1beta1.RollingUpdateStrategy))
		Expect(placement.Spec.Strategy.RollingUpdate.MaxSurge.String()).To(Equal("25%"))
		Expect(placement.Spec.Strategy.RollingUpdate.MaxUnavailable.String()).To(Equal("25%"))
		Expect(placement.Spec.Strategy.RollingUpdate.UnavailablePeriodSeconds).To(Equal(ptr.To(60)))
	})

	It("write a Work without status, and its status without manifests", func(ctx SpecContext) {
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{GenerateName: "empty-", Namespace: namespace}}
		Expect(hubClient.Create(ctx, work)).To(Succeed())
		work.Status.Conditions = []metav1.Condition{}
		Expect(hubClient.Status().Update(ctx, work)).To(Succeed())
	})

	It("write a snapshot of no resources", func(ctx SpecContext) {
		Expect(hubClient.Create(ctx, &placementv1beta1.ClusterResourceSnapshot{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "empty-"},
			Spec:       placementv1beta1.ResourceSnapshotSpec{SelectedResources: []placementv1beta1.Manifest{}},
		})).To(Succeed())
	})
})
