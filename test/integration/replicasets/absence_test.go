// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// uidsOf returns the UIDs of a set's ManifestWorks by cluster, to detect re-created ones.
func uidsOf(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) func() map[string]types.UID {
	return func() map[string]types.UID {
		uids := map[string]types.UID{}
		for _, work := range worksOf(ctx, set) {
			uids[work.Namespace] = work.UID
		}
		return uids
	}
}

var _ = Describe("Absence of clusters from PlacementDecisions", func() {
	It("keeps the ManifestWork of a cluster that moves from one PlacementDecision to another", func(ctx SpecContext) {
		b := newBed(ctx, 3)
		b.place(ctx, "p", b.clusters[:2], b.clusters[2:])
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		before := uidsOf(ctx, set)()

		By("removing it from the first PlacementDecision before the second one has it")
		b.decide(ctx, "p-decision-1", b.clusters[0])
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(And(ContainSubstring("2 clusters"), ContainSubstring("3 selected clusters"), ContainSubstring("retained")))
		Consistently(uidsOf(ctx, set)).Should(Equal(before))

		By("adding it to the second one")
		b.decide(ctx, "p-decision-2", b.clusters[1], b.clusters[2])
		Eventually(said(ctx, set)).Should(ContainElement(verified))
		Expect(uidsOf(ctx, set)()).To(Equal(before))

		By("reducing the number of clusters in the Placement's status")
		b.decide(ctx, "p-decision-1")
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring("retained"))
		b.sum(ctx, "p")
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[1:]...)))
		Eventually(said(ctx, set)).Should(ContainElement(verified))
	})

	It("keeps the ManifestWorks of many clusters that a Placement loses at once, until somebody confirms", func(ctx SpecContext) {
		b := newBed(ctx, 6)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		before := uidsOf(ctx, set)()

		b.decide(ctx, "p-decision-1", b.clusters[0])
		b.sum(ctx, "p")
		suspended := message(ctx, set, placementv1beta1.ConditionRemovalSuspended)
		Eventually(suspended).Should(ContainSubstring("5 of 6 clusters"))
		Consistently(uidsOf(ctx, set)).Should(Equal(before))
		Expect(message(ctx, set, workv1alpha1.ConditionPlacementVerified)(Default)).To(ContainSubstring("5 of 6 clusters"))

		_, token, found := strings.Cut(suspended(Default), placementv1beta1.ConfirmRemovalAnnotation+"=")
		Expect(found).To(BeTrue())
		Expect(hubClient.Patch(ctx, set, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placementv1beta1.ConfirmRemovalAnnotation, token)))).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0])))
		Eventually(suspended).Should(BeEmpty())
	})

	It("keeps the ManifestWorks of a Placement that is no longer named until others replace them", func(ctx SpecContext) {
		b := newBed(ctx, 3)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		before := uidsOf(ctx, set)()
		why := message(ctx, set, workv1alpha1.ConditionPlacementVerified)

		By("naming a Placement that does not exist yet")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.PlacementRefs[0].Name = "q" })
		Eventually(said(ctx, set)).Should(ContainElement("PlacementVerified False PlacementDecisionNotFound"))
		Consistently(uidsOf(ctx, set)).Should(Equal(before))

		By("creating it, for two of the clusters")
		b.place(ctx, "q", b.clusters[:2])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0], b.clusters[0], b.clusters[1], b.clusters[1])))
		Eventually(why).Should(And(HavePrefix("2 ManifestWorks"), ContainSubstring(b.clusters[0])))

		By("applying its ManifestWork in one of them, then in the other")
		applyIn(ctx, set, b.clusters[0])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[0], b.clusters[1], b.clusters[1])))
		applyIn(ctx, set, b.clusters[1])
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[:2]...)))
		Eventually(said(ctx, set)).Should(ContainElement(verified))
	})

	It("keeps ManifestWorks while a re-created Placement has no decisions yet", func(ctx SpecContext) {
		b := newBed(ctx, 2)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", everywhere("p"))
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		before := uidsOf(ctx, set)()

		placement := metav1.ObjectMeta{Namespace: b.namespace, Name: "p"}
		Expect(hubClient.Delete(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: placement})).To(Succeed())
		Eventually(said(ctx, set)).Should(ContainElement("PlacementVerified False PlacementDecisionNotFound"))
		Expect(hubClient.Delete(ctx, &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "p-decision-1"}})).To(Succeed())
		Expect(hubClient.Create(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: placement})).To(Succeed())
		Eventually(message(ctx, set, workv1alpha1.ConditionPlacementVerified)).Should(ContainSubstring("no status yet"))
		Consistently(uidsOf(ctx, set)).Should(Equal(before))
		Expect(hubClient.Delete(ctx, &ocmclusterv1beta1.Placement{ObjectMeta: placement}, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	})
})
