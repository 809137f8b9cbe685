// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
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
		worksNow := func(ctx context.Context) []types.UID {
			return []types.UID{accidentWork(ctx, "member-1", name).UID, accidentWork(ctx, "member-2", name).UID}
		}
		works := worksNow(ctx)
		expectAdopted := func(ctx context.Context) {
			GinkgoHelper()
			for i, member := range []string{"member-1", "member-2"} {
				Eventually(func(g Gomega, ctx context.Context) {
					work := accidentWork(ctx, member, name)
					g.Expect(work.UID).NotTo(BeElementOf(types.UID(""), works[i]))
					g.Expect(work.Status.Conditions).To(ContainElement(HaveField("Type", placementv1beta1.ConditionAvailable)))
				}).WithContext(ctx).Should(Succeed())
			}
			Expect([]types.UID{placed(ctx, member1), placed(ctx, member2)}).To(Equal(before))
			waitAvailable(ctx, name)
		}

		By("a user deleting a Work")
		kubectl(ctx, running.Hub, "delete", "works.placement.kubernetes-fleet.io", name+"-work", "-n", "fleet-member-member-1", "--wait=false")
		By("the garbage collector deleting a Work that was restored with the UID of a previous owner")
		kubectl(ctx, running.Hub, "patch", "works.placement.kubernetes-fleet.io", name+"-work", "-n", "fleet-member-member-2", "--type=json",
			"-p", `[{"op":"replace","path":"/metadata/ownerReferences/0/uid","value":"8f6ce0a2-0f0d-4a58-9f1f-0c6e43f6f7b7"}]`)
		expectAdopted(ctx)

		By("a user deleting the bindings")
		works = worksNow(ctx)
		kubectl(ctx, running.Hub, "delete", "clusterresourcebindings", "-l", placementv1beta1.ParentPlacementLabel+"="+name)
		expectAdopted(ctx)

		By("still deleting the objects with their placement")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", name)
		for _, c := range []client.Client{member1, member2} {
			Eventually(deletionGone(c, deletionNamespace(name))).WithContext(ctx).Should(BeTrue())
		}
	})
})

var _ = Describe("The CustomResourceDefinition of placements", Serial, func() {
	const (
		definition = "resourceplacements.placement.kubernetes-fleet.io"
		name       = "r44"
		manifest   = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourcePlacement, metadata: {namespace: r44, name: r44}, spec: {
			resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: placed}], policy: {placementType: PickFixed, clusterNames: [member-1]}}}`
	)

	It("is deleted only after a confirmation, and members keep what its placements placed", func(ctx SpecContext) {
		for _, at := range []*env.Cluster{running.Hub, running.Members[0].Cluster} {
			kubectl(ctx, at, "create", "namespace", name)
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, at, "delete", "namespace", name, "--wait=false") })
		}
		kubectl(ctx, running.Hub, "create", "configmap", "placed", "-n", name)
		kubectlInput(ctx, manifest)
		applied := func(g Gomega, ctx context.Context) {
			g.Expect(accidentWork(ctx, "member-1", name+"."+name).Status.Conditions).To(ContainElement(And(
				HaveField("Type", placementv1beta1.ConditionApplied), HaveField("Status", metav1.ConditionTrue))))
		}
		Eventually(applied).WithContext(ctx).Should(Succeed())
		placed := deletionConfigMap(name, "placed")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(placed), placed)).To(Succeed())
		uid := placed.UID

		By("deleting it")
		output, err := program.Kubectl(ctx, running.Hub, "", "delete", "crd", definition)
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring("deleting CustomResourceDefinition " + definition + " deletes all its objects; annotate it fleetgate.io/confirm-delete=true first"))
		kubectl(ctx, running.Hub, "annotate", "crd", definition, "fleetgate.io/confirm-delete=true")
		installed, err := crds.Named(definition)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, running.Hub, "delete", "crd", definition)
		Eventually(func(ctx context.Context) types.UID { return accidentWork(ctx, "member-1", name+"."+name).UID }).WithContext(ctx).Should(BeEmpty())
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(placed), placed)).To(Succeed())
		Expect(placed.DeletionTimestamp).To(BeNil())

		By("creating it and the placement again")
		installed[0].Labels = map[string]string{install.LabelManagedBy: install.ManagedBy}
		text, err := json.Marshal(installed[0])
		Expect(err).NotTo(HaveOccurred())
		output, err = program.Kubectl(ctx, running.Hub, string(text), "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), output)
		kubectl(ctx, running.Hub, "wait", "--for=condition=Established", "crd", definition)
		kubectlInput(ctx, manifest)
		Eventually(applied).WithContext(ctx).Should(Succeed())
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(placed), placed)).To(Succeed())
		Expect(placed.UID).To(Equal(uid))
	})
})

// accidentWork is the Work of a placement for a member; empty if there is none.
func accidentWork(ctx context.Context, member, placement string) *placementv1beta1.Work {
	work := &placementv1beta1.Work{}
	_ = hub.Get(ctx, client.ObjectKey{Namespace: "fleet-member-" + member, Name: placement + "-work"}, work)
	return work
}
