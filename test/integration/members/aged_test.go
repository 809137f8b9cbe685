// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

var _ = Describe("An agent that is three minor versions older than its gateway", Label("matrix"), func() {
	It("connects, keeps workloads running, applies placements, and is reported as outdated", func(ctx SpecContext) {
		const agentOutdated = `--output=jsonpath={range .status.conditions[?(@.type=="AgentOutdated")]}{.status} {.message}{end}`
		h := &hub{Fleet: program.Fleet(ctx, fleet.Options{
			Members: []string{member}, GatewayPath: program.OfVersion(ctx, "gateway", "v0.4.0"), AgentPath: program.OfVersion(ctx, "agent", "v0.4.7"),
		})}
		firstHub = h
		h.place(ctx, "shop", "shop", "before")
		Eventually(h.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
		Expect(h.kubectl(ctx, "", "get", "membercluster", member, agentOutdated)).To(BeEmpty(), "gateway and agent are compatible")
		steady := watchSteadiness(ctx, h.Members[0].Cluster, "shop")

		By("starting a gateway three minor versions newer")
		h.GatewayPath = program.OfVersion(ctx, "gateway", "v0.7.0")
		Expect(h.Remake(ctx, 0)).To(Succeed())
		Eventually(h.asks(ctx, "get", "membercluster", member, agentOutdated)).Should(And(HavePrefix("True"), ContainSubstring("v0.4.7"), ContainSubstring("v0.7.0")))
		Eventually(h.AwaitTunnels).WithContext(ctx).Should(Succeed())
		h.kubectl(ctx, "", "patch", "configmap", "settings", "--namespace=shop", "--type=merge", `--patch={"data":{"from":"later"}}`)
		Eventually(func() (string, error) {
			return h.Kubectl(ctx, h.MemberKubeconfig(member), "", "get", "configmap", "settings", "--namespace=shop", "--output=jsonpath={.data.from}")
		}).Should(Equal("later"))
		Expect(steady.found()).To(BeEmpty())

		By("upgrading the agent")
		h.AgentPath = program.OfVersion(ctx, "agent", "v0.7.0")
		Expect(h.RemakeAgent(ctx, h.Members[0])).To(Succeed())
		Eventually(h.asks(ctx, "get", "membercluster", member, agentOutdated)).Should(BeEmpty())
		Expect(steady.found()).To(BeEmpty())
	})
})
