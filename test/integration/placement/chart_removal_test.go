// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

var _ = Describe("A chart that has fewer objects for a member", func() {
	It("keeps them until a confirmation if the member changed, and removes them if the chart did", func(ctx SpecContext) {
		makeNamespace(ctx, "cr-addons")
		members := reportingMembers(ctx, "cr", 2)
		packed := chartOf(map[string]string{"templates/a.yaml": `
{{- $count := .Values.count }}
{{- if eq (index .Values.global.fleetgate.member.labels "region") "retired" }}{{ $count = 1 }}{{ end }}
{{- range until (int $count) }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c-{{ . }}}
{{- end }}
`})
		carrier := addon(ctx, "cr-addons", "a", packed, map[string]string{helmchart.KeyValues: "count: 8"})
		place(ctx, "cr", "cr-addons", nil)
		count := func(member string) func() (int, error) {
			return func() (int, error) {
				work, err := addonWork(ctx, member, "", "cr", "cr-addons", "a")
				return len(work.Spec.Workload.Manifests), client.IgnoreNotFound(err)
			}
		}
		for _, member := range members {
			Eventually(func() (int, error) {
				work, err := addonWork(ctx, member, "", "cr", "cr-addons", "a")
				return len(work.Status.ManifestConditions), client.IgnoreNotFound(err)
			}).WithTimeout(soon).WithPolling(often).Should(Equal(8))
		}
		expectAvailable(ctx, "cr", "0")

		By("changing a label of one member")
		setRegion(ctx, "retired", members[0])
		Eventually(said).WithContext(ctx).WithArguments("cr", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(And(
			ContainSubstring("fewer objects for 1 of 2 members: cr-1 loses 7 of 9 objects (ConfigMap cr-addons/c-1 and 6 more)."),
			ContainSubstring("kubectl fleetgate confirm cr")))
		Expect(count(members[0])()).To(Equal(8))
		Eventually(problemOn(ctx, "cr", members[0])).WithTimeout(soon).WithPolling(often).Should(
			Equal("the removal of objects waits for a confirmation: see condition RemovalSuspended of the placement"))
		confirm(ctx, "cr")
		Eventually(count(members[0])).WithTimeout(soon).WithPolling(often).Should(Equal(1))
		Eventually(said).WithContext(ctx).WithArguments("cr", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(BeEmpty())
		expectAvailable(ctx, "cr", "0")
		Expect(count(members[1])()).To(Equal(8))

		By("changing a label without an effect, and then the values of the chart")
		edit(ctx, members[1], func(m *clusterv1beta1.MemberCluster) { m.Labels["tier"] = "gold" })
		Eventually(func() (bool, error) {
			one, err := addonWork(ctx, members[0], "", "cr", "cr-addons", "a")
			if err != nil {
				return false, err
			}
			other, err := addonWork(ctx, members[1], "", "cr", "cr-addons", "a")
			return one.Annotations[placementv1beta1.RenderedForAnnotation] != other.Annotations[placementv1beta1.RenderedForAnnotation], err
		}).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(carrier), carrier)).To(Succeed())
		carrier.Data[helmchart.KeyValues] = "count: 2"
		Expect(hub.Update(ctx, carrier)).To(Succeed())
		Eventually(count(members[1])).WithTimeout(soon).WithPolling(often).Should(Equal(2))
		Expect(said(ctx, "cr", placementv1beta1.ConditionRemovalSuspended)).To(BeEmpty())
	})
})
