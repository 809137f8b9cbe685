// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A deletion on the hub that its placement did not cause", Serial, func() {
	It("re-creates Works, and keeps their objects on the members", func(ctx SpecContext) {
		const name = "r43"
		deletionPlace(ctx, name, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: r43, name: placed}}`, nil)
		placed := func(ctx context.Context, c client.Client) types.UID {
			object := deletionConfigMap(name, "placed")
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil || object.DeletionTimestamp != nil {
				return ""
			}
			return object.UID
		}
		before := []types.UID{placed(ctx, member1), placed(ctx, member2)}
		works := []types.UID{accidentWork(ctx, "member-1", name).UID, accidentWork(ctx, "member-2", name).UID}

		By("a user deleting a Work")
		kubectl(ctx, running.Hub, "delete", "works.placement.kubernetes-fleet.io", name+"-work", "-n", "fleet-member-member-1", "--wait=false")
		By("the garbage collector deleting a Work that was restored with the UID of a previous owner")
		kubectl(ctx, running.Hub, "patch", "works.placement.kubernetes-fleet.io", name+"-work", "-n", "fleet-member-member-2", "--type=json",
			"-p", `[{"op":"replace","path":"/metadata/ownerReferences/0/uid","value":"8f6ce0a2-0f0d-4a58-9f1f-0c6e43f6f7b7"}]`)
		for i, member := range []string{"member-1", "member-2"} {
			Eventually(func(g Gomega, ctx context.Context) {
				work := accidentWork(ctx, member, name)
				g.Expect(work.UID).NotTo(BeElementOf(types.UID(""), works[i]))
				g.Expect(work.Status.Conditions).To(ContainElement(HaveField("Type", placementv1beta1.ConditionAvailable)))
			}).WithContext(ctx).Should(Succeed())
		}
		Expect([]types.UID{placed(ctx, member1), placed(ctx, member2)}).To(Equal(before))
		waitAvailable(ctx, name)

		By("still deleting the objects with their placement")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", name)
		for _, c := range []client.Client{member1, member2} {
			Eventually(deletionGone(c, deletionNamespace(name))).WithContext(ctx).Should(BeTrue())
		}
	})
})

// accidentWork is the Work of a placement for a member; empty if there is none.
func accidentWork(ctx context.Context, member, placement string) *placementv1beta1.Work {
	work := &placementv1beta1.Work{}
	_ = hub.Get(ctx, client.ObjectKey{Namespace: "fleet-member-" + member, Name: placement + "-work"}, work)
	return work
}
