// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// nowhere is a placement without resources.
const nowhere = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: nowhere}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: nowhere}]
  policy: {placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {nowhere: "true"}}}]}}}}
`

var _ = Describe("Members by the plugin", Ordered, ContinueOnFailure, func() {
	It("are listed in one table, by label, by name and as objects", func(ctx SpecContext) {
		Eventually(says(ctx, "members", "-o", "wide")).Should(And(
			MatchRegexp(`NAME +JOINED +CONNECTED +LAST-SEEN +AGENT +KUBERNETES +FAILING +TAINTS +NODES +REASON`),
			MatchRegexp(`member-1 +True +Yes +\S+ ago +\S+ +v1\.\d+\.\d+ +\d+ +- +1 +`),
			ContainSubstring(second)))
		Expect(plugin(ctx, "members", "-l", "name="+first, "-o", "name")).To(Equal("membercluster.cluster.kubernetes-fleet.io/member-1\n"))
		Expect(plugin(ctx, "members", second, "-o", "yaml")).To(And(ContainSubstring("kind: MemberClusterList"), Not(ContainSubstring("name: member-1"))))
		Eventually(says(ctx, "members", second, "--not-ready")).Should(ContainSubstring("No members found"))
	})

	It("are completed by name when kubectl runs the plugin", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		Expect(os.Symlink(filepath.Join(running.BinDir, "kubectl-fleetgate"), filepath.Join(dir, "kubectl-fleetgate"))).To(Succeed())
		kubectl := func(ctx context.Context, args ...string) string {
			command := exec.CommandContext(ctx, filepath.Join(running.BinDir, "kubectl"), append([]string{"fleetgate"}, args...)...)
			command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KUBECONFIG="+running.HubKubeconfig(), "HOME="+dir)
			out, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			return string(out)
		}
		Expect(kubectl(ctx, "members")).To(ContainSubstring(first))
		Expect(kubectl(ctx, "__complete", "cordon", "")).To(And(ContainSubstring(first), ContainSubstring(second), ContainSubstring(":4")))
		Expect(kubectl(ctx, "__complete", "tree", "shop", "--member", "")).To(ContainSubstring(second))
	})

	It("are suggested for a misspelled name", func(ctx SpecContext) {
		_, code, stderr := tries(ctx, "cordon", "membre-1")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`no member "membre-1": did you mean member-1`))
		_, code, stderr = tries(ctx, "tree", "no-such-placement")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`no placement "no-such-placement"`))
		hub(ctx, nowhere, "apply", "--filename=-")
		DeferCleanup(func(ctx SpecContext) { hub(ctx, "", "delete", "clusterresourceplacement", "nowhere", "--wait=false") })
		for _, args := range [][]string{{"diff", "nowhere", "--member", "membre-1"}, {"use", "membre-1"}, {"kubeconfig", "membre-1"}} {
			out, code, stderr := tries(ctx, args...)
			Expect(code).To(Equal(1), out)
			Expect(stderr).To(ContainSubstring(`no member "membre-1": did you mean member-1`))
		}
	})

	It("are cordoned, tainted and approved", func(ctx SpecContext) {
		Expect(plugin(ctx, "cordon", second)).To(Equal("member member-2 cordoned\n"))
		Expect(plugin(ctx, "members", second)).To(ContainSubstring("fleetgate.io/cordoned:NoSchedule"))
		out, code, _ := tries(ctx, "why", "member/"+second)
		Expect(code).To(Equal(2))
		Expect(out).To(ContainSubstring("Remedy: kubectl fleetgate uncordon member-2"))
		plugin(ctx, "uncordon", second)
		plugin(ctx, "taint", second, "maintenance=rack-7:NoSchedule")
		Expect(plugin(ctx, "members", second)).To(ContainSubstring("maintenance=rack-7:NoSchedule"))
		plugin(ctx, "taint", second, "maintenance-")
		Expect(plugin(ctx, "members", second)).NotTo(Or(ContainSubstring("maintenance"), ContainSubstring("cordoned")))
		Expect(plugin(ctx, "approve", second)).To(Equal("member member-2 approved\n"))
		_, code, stderr := tries(ctx, "reject", second)
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("kubectl fleetgate leave member-2"))
	})

	It("are watched", func(ctx SpecContext) {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		command := exec.CommandContext(watching, filepath.Join(running.BinDir, "kubectl-fleetgate"), "members", "--watch", "--kubeconfig="+running.HubKubeconfig())
		command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
		out := gbytes.NewBuffer()
		command.Stdout, command.Env = out, append(os.Environ(), "HOME="+running.Dir)
		Expect(command.Start()).To(Succeed())
		Eventually(out).Should(gbytes.Say(second))
		plugin(ctx, "taint", second, "followed:NoSchedule")
		Eventually(out).Should(gbytes.Say("followed:NoSchedule"))
		plugin(ctx, "taint", second, "followed-")
		stop()
		Expect(command.Wait()).To(Or(Succeed(), MatchError(context.Canceled)))
	})

	It("are rejected as newcomers, and leave", func(ctx SpecContext) {
		for _, name := range []string{"newcomer", "guest"} {
			hub(ctx, `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: `+name+`}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}, taints: [{key: fleetgate.io/unapproved, effect: NoSchedule}]}
`, "apply", "--filename=-")
		}
		Expect(says(ctx, "why", "member/newcomer")()).To(ContainSubstring("Remedy: kubectl fleetgate approve newcomer"))
		plugin(ctx, "reject", "newcomer")
		Expect(plugin(ctx, "leave", "guest")).To(Equal("member guest has left\n"))
		Eventually(says(ctx, "members", "-o", "name")).ShouldNot(ContainSubstring("newcomer"))
	})

	It("are drained within disruption budgets", func(ctx SpecContext) {
		hub(ctx, `
apiVersion: v1
kind: Namespace
metadata: {name: moving}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: moving}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: moving}]
  policy: {placementType: PickN, numberOfClusters: 1, affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, preference: {labelSelector: {matchLabels: {name: member-2}}}}]}}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacementDisruptionBudget
metadata: {name: moving}
spec: {minAvailable: 1}
`, "apply", "--filename=-")
		Eventually(says(ctx, "tree", "moving")).Should(And(ContainSubstring("member member-2: available"), ContainSubstring("Namespace moving: available")))
		_, code, stderr := tries(ctx, "drain", second, "--timeout=3s")
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring("draining member \"member-2\""), ContainSubstring("Eviction is blocked")))
		out, code, _ := tries(ctx, "why", "moving", "--member", second)
		Expect(code).To(Equal(2))
		Expect(out).To(And(HavePrefix("placement moving on member member-2: Eviction is blocked"), ContainSubstring("Remedy: wait until more members have the placement, or change ClusterResourcePlacementDisruptionBudget moving")))

		// After giving up and uncordoning, no budget blocks the drain.
		plugin(ctx, "uncordon", second)
		Expect(plugin(ctx, "why", "moving", "--member", second)).To(Equal("placement moving: no problems found\n"))

		hub(ctx, "", "delete", "clusterresourceplacementdisruptionbudget", "moving")
		Expect(plugin(ctx, "drain", second)).To(And(ContainSubstring("placement moving evicted"), ContainSubstring("member member-2 drained")))
		Eventually(says(ctx, "tree", "moving")).Should(ContainSubstring("member member-1: available"))
		Expect(says(ctx, "why", "moving", "--member", second)()).To(ContainSubstring("Remedy: kubectl fleetgate uncordon member-2"))
		plugin(ctx, "uncordon", second)
		hub(ctx, "", "delete", "clusterresourceplacement", "moving", "--wait=false")
	})

	It("are selected with use, and deselected", func(ctx SpecContext) {
		own := filepath.Join(GinkgoT().TempDir(), "config")
		text, err := os.ReadFile(running.HubKubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(own, text, 0o600)).To(Succeed())
		run := func(args ...string) string {
			GinkgoHelper()
			out, err := running.Run(ctx, "kubectl-fleetgate", "", append([]string{"--kubeconfig=" + own}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			return out
		}
		before, err := running.Kubectl(ctx, own, "", "config", "current-context")
		Expect(err).NotTo(HaveOccurred())
		Expect(run("use", first)).To(ContainSubstring("Switched to member-1 with context"))
		out, err := running.Kubectl(ctx, own, "", "get", "nodes", "--output=name")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("node/member-1"))
		Expect(run("members", "-o", "name")).To(ContainSubstring(second), "the plugin still works on the hub")
		run("use", second)
		Expect(run("use", "-")).To(ContainSubstring("removed 2 contexts"))
		after, err := running.Kubectl(ctx, own, "", "config", "current-context")
		Expect(err).NotTo(HaveOccurred())
		Expect(after).To(Equal(before))
		contexts, err := running.Kubectl(ctx, own, "", "config", "get-contexts", "--output=name")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(contexts)).To(HaveLen(1))
	})

	It("are registered with tokens", func(ctx SpecContext) {
		Expect(plugin(ctx, "token", "edge", "--ttl=1h")).To(And(ContainSubstring("token edge created in namespace clusters"), ContainSubstring("helm install")))
		Expect(plugin(ctx, "token", "--values")).To(And(ContainSubstring("token:"), ContainSubstring("apiServerURL:")))
	})

	It("are simulated and diagnosed", func(ctx SpecContext) {
		file := filepath.Join(GinkgoT().TempDir(), "placement.yaml")
		Expect(os.WriteFile(file, []byte(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: trial}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: default}]
  policy: {placementType: PickN, numberOfClusters: 3}
`), 0o600)).To(Succeed())
		Expect(plugin(ctx, "simulate", "-f", file)).To(And(ContainSubstring("not fulfilled"), MatchRegexp(`member-1 +yes +Add`)))
		Expect(plugin(ctx, "diagnose")).To(And(ContainSubstring("MEMBERS"), ContainSubstring("fleetgate-gateway")))
	})
})
