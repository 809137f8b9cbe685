// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("An envelope", func() {
	holding := func(json string) map[string]placementv1beta1.EnvelopedObject {
		return map[string]placementv1beta1.EnvelopedObject{"quota.yaml": {RawExtension: runtime.RawExtension{Raw: []byte(json)}}}
	}

	It("delivers its contents to members and has no effect on the hub", func(ctx SpecContext) {
		shop(ctx, "env-shop")
		join(ctx, "env-1", map[string]string{fleetLabel: "env"})
		agent("env-1")
		envelope := &placementv1beta1.ResourceEnvelope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "env-shop", Name: "quotas"},
			Data:       holding(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"small","namespace":"env-shop"},"spec":{"hard":{"pods":"3"}}}`),
		}
		Expect(hub.Create(ctx, envelope)).To(Succeed())
		place(ctx, "env", "env-shop", nil)
		expectAvailable(ctx, "env", "0")

		work := &placementv1beta1.Work{}
		name := placementv1beta1.EnvelopeWorkName("", "env", placementv1beta1.EnvelopeIdentifier{
			Type: placementv1beta1.ResourceEnvelopeType, Namespace: "env-shop", Name: "quotas",
		})
		Expect(hub.Get(ctx, types.NamespacedName{Namespace: clusterv1beta1.MemberNamespace("env-1"), Name: name}, work)).To(Succeed())
		Expect(kindsIn(work)).To(Equal([]string{"ResourceQuota/small"}))
		rest, err := workOf(ctx, "env-1", "env")
		Expect(err).NotTo(HaveOccurred())
		Expect(kindsIn(rest)).NotTo(ContainElement("ResourceEnvelope/quotas"))
		crp, err := statusOf(ctx, "env")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.SelectedResources).To(ContainElement(HaveField("Kind", "ResourceEnvelope")))

		By("adding an object of another namespace")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(envelope), envelope)).To(Succeed())
		envelope.Data = holding(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"small","namespace":"kube-system"}}`)
		Expect(hub.Update(ctx, envelope)).To(Succeed())
		Eventually(func(g Gomega) {
			bindings, err := bindingsOf(ctx, "env")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bindings["env-1"].Status.Conditions).To(ContainElement(And(
				HaveField("Type", "WorkSynchronized"), HaveField("Reason", "SyncWorkFailed"),
				HaveField("Message", ContainSubstring(`ResourceEnvelope "env-shop/quotas": data["quota.yaml"]: ResourceQuota small has namespace "kube-system"`)))))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(work), work)).To(Succeed())
		Expect(kindsIn(work)).To(Equal([]string{"ResourceQuota/small"}))

		By("deleting the envelope")
		Expect(hub.Delete(ctx, envelope)).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(work), work) }).WithTimeout(soon).WithPolling(often).Should(
			MatchError(ContainSubstring("not found")))
		expectAvailable(ctx, "env", "2")
	})
})
