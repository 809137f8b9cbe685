// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

// wrong is the clock error that docs/reference/operations.md allows.
const wrong = 10 * time.Minute

var _ = Describe("A fleet with a clock that is wrong by ten minutes", Label("matrix"), func() {
	for _, c := range []struct {
		whose          string
		gateway, agent time.Duration
	}{
		{whose: "the gateway's clock is ahead", gateway: wrong},
		{whose: "the gateway's clock is behind", gateway: -wrong},
		{whose: "the agent's clock is ahead", agent: wrong},
		{whose: "the agent's clock is behind", agent: -wrong},
		{whose: "both clocks are wrong in opposite directions", gateway: wrong, agent: -wrong},
	} {
		It("joins, applies placements, is reachable, and loses nothing when "+c.whose, func(ctx SpecContext) {
			h := &hub{Fleet: program.Fleet(ctx, fleet.Options{
				Members:     []string{member},
				GatewayPath: program.WithClock(ctx, "gateway", c.gateway), AgentPath: program.WithClock(ctx, "agent", c.agent),
			})}
			firstHub = h
			h.place(ctx, "shop", "shop", "before")
			Eventually(h.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
			steady := watchSteadiness(ctx, h.Members[0].Cluster, "shop")
			delivers := func(value string) {
				GinkgoHelper()
				h.kubectl(ctx, "", "patch", "configmap", "settings", "--namespace=shop", "--type=merge", `--patch={"data":{"from":"`+value+`"}}`)
				Eventually(func() (string, error) {
					return h.Kubectl(ctx, h.MemberKubeconfig(member), "", "get", "configmap", "settings", "--namespace=shop", "--output=jsonpath={.data.from}")
				}).Should(Equal(value))
			}
			delivers("changed")

			By("rotating the gateway's token on the member")
			h.kubectl(ctx, "", "delete", "secret", "cluster-gateway", "--namespace=fleet-member-"+member)
			delivers("with another token")

			By("restarting both programs")
			Expect(h.Gateway.Restart(ctx)).To(Succeed())
			Expect(h.Members[0].Agent.Restart(ctx)).To(Succeed())
			Eventually(h.AwaitTunnels).WithContext(ctx).Should(Succeed())
			delivers("after a start")

			By("staying ready for longer than a Lease lasts")
			status := func(condition string) func() (string, error) {
				return h.asks(ctx, "get", "membercluster", member, `--output=jsonpath={.status.conditions[?(@.type=="`+condition+`")].status}`)
			}
			for _, condition := range []string{"Joined", "TunnelConnected"} {
				Eventually(status(condition)).Should(Equal("True"), condition)
			}
			Consistently(status("Joined")).WithTimeout(75 * time.Second).WithPolling(time.Second).Should(Equal("True"))
			Expect(h.conditionOf(ctx, "shop", "Available")()).To(Equal("True"))
			Expect(steady.found()).To(BeEmpty())
		})
	}
})
