// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

var _ = Describe("A cluster joins by the plugin", Ordered, func() {
	var edge *program.Newcomer

	BeforeAll(func(ctx SpecContext) { edge = program.StartNewcomer(ctx, env.Options{Name: "edge"}) })

	It("with the printed commands, or gets the reason that it cannot", func(ctx SpecContext) {
		printed := plugin(ctx, "join", "printed", "--print", "--image=registry.example.com/agent:v1")
		Expect(printed).To(And(ContainSubstring("kind: Deployment"), ContainSubstring("registry.example.com/agent:v1"), ContainSubstring("token:")))

		_, code, stderr := tries(ctx, "join", "edge", "--member-kubeconfig="+edge.Admin, "--timeout=3s")
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring("installed the agent on"), ContainSubstring("the agent of edge has not registered: check the agent's log")))
	})

	It("in one command, with the rights that the chart grants", func(ctx SpecContext) {
		join := exec.CommandContext(ctx, filepath.Join(running.BinDir, "kubectl-fleetgate"), "join", "edge", "--kubeconfig="+running.HubKubeconfig(), "--member-kubeconfig="+edge.Admin, "--timeout=2m")
		join.Env = append(os.Environ(), "HOME="+running.Dir, "KUBECONFIG=")
		joining, err := gexec.Start(join, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(joining.Err).Should(gbytes.Say(`created token clusters/\S+, valid for Cluster edge only`))
		Eventually(joining.Err).Should(gbytes.Say("installed the agent on https://"))
		Eventually(joining.Err).Should(gbytes.Say("the agent of edge has not registered"))
		edge.RunAgent(ctx)
		Eventually(joining).Should(gexec.Exit(0))
		Expect(joining.Out).To(gbytes.Say("^member edge has joined\n$"))
		Eventually(says(ctx, "members", "edge")).Should(MatchRegexp(`edge +True +Yes`))

		_, code, stderr := tries(ctx, "join", "edge", "--member-kubeconfig="+edge.Admin)
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`member "edge" already exists`))
	})

	It("and why names the right that its agent lost", func(ctx SpecContext) {
		edge.Kubectl(ctx, "", "delete", "clusterrolebinding", "fleetgate:fleet-system:fleet-agent:placement")
		hub(ctx, `
apiVersion: v1
kind: Namespace
metadata: {name: rightless}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: rightless}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: rightless}]
  policy: {placementType: PickFixed, clusterNames: [edge]}
`, "apply", "--filename=-")
		Eventually(func() string {
			out, code, stderr := tries(ctx, "why", "rightless", "--member", "edge")
			line, _, _ := strings.Cut(out, "\n")
			return fmt.Sprintf("%d %s%s", code, line, stderr)
		}).Should(And(HavePrefix("2 Namespace rightless on member edge: not applied: The agent cannot"), ContainSubstring("namespaces"),
			ContainSubstring("Remedy: grant the agent on member edge the permission named in the message")))
		edge.Kubectl(ctx, "", "create", "clusterrolebinding", "fleetgate:fleet-system:fleet-agent:placement", "--clusterrole=cluster-admin", "--serviceaccount=fleet-system:fleet-agent")
		hub(ctx, "", "label", "namespace", "rightless", "tried=again") // It would be tried again later anyway.
		Eventually(says(ctx, "why", "rightless", "--member", "edge")).Should(ContainSubstring("no problems found"))
	})

	It("and leaves", func(ctx SpecContext) {
		hub(ctx, "", "delete", "clusterresourceplacement", "rightless", "--ignore-not-found")
		Expect(plugin(ctx, "leave", "edge")).To(Equal("member edge has left\n"))
		Expect(says(ctx, "why", "member/edge")()).To(ContainSubstring("prevents it from joining again"))
	})
})
