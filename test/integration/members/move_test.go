// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

// edgeName is the name of the moving cluster on both hubs.
const edgeName = "edge"

// plugin starts kubectl fleetgate.
func (h *hub) plugin(ctx context.Context, args ...string) *gexec.Session {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join(h.BinDir, "kubectl-fleetgate"), append([]string{"--kubeconfig=" + h.HubKubeconfig()}, args...)...)
	command.Env = append(os.Environ(), "HOME="+h.Dir, "KUBECONFIG=")
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	return session
}

// placeApplication makes the hub place a namespace with a ConfigMap that names the hub, and a
// Deployment that is the same on both hubs.
func (h *hub) placeApplication(ctx context.Context, placement, namespace, value string) {
	GinkgoHelper()
	h.placeBy(ctx, placement, namespace, value, "{placementType: PickAll, tolerations: [{key: rack, operator: Exists}]}", fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web:1}]}
---`, namespace))
}

// memberField returns a field of the moving member on the hub.
func (h *hub) memberField(ctx context.Context, field string) func() (string, error) {
	return h.asks(ctx, "get", "membercluster", edgeName, "--ignore-not-found", "--output=jsonpath="+field)
}

const (
	joinedField = `{.status.conditions[?(@.type=="Joined")].status}`
	heldField   = `{.status.conditions[?(@.type=="PlacementsRetained")].message}`
	isHeldField = `{.status.conditions[?(@.type=="PlacementsRetained")].status}`
)

var _ = Describe("A member that kubectl fleetgate moves", Ordered, Label("matrix"), func() {
	var (
		first, second *hub
		edge          *program.Newcomer
		steady        *steadiness
	)
	// from returns the hub's name in the application's ConfigMap on the member.
	from := func(ctx context.Context, namespace string) func() string {
		return func() string {
			return edge.Kubectl(ctx, "", "get", "configmap", "settings", "--namespace="+namespace, "--output=jsonpath={.data.from}")
		}
	}
	// move moves the member from one hub to another.
	move := func(ctx context.Context, at, to *hub, flags ...string) *gexec.Session {
		GinkgoHelper()
		session := at.plugin(ctx, append([]string{"move", edgeName, "--to-kubeconfig=" + to.HubKubeconfig(), "--member-kubeconfig=" + edge.Admin}, flags...)...)
		Eventually(session).WithTimeout(3 * time.Minute).Should(gexec.Exit())
		return session
	}
	areAvailable := func(ctx context.Context, h *hub, placements ...string) {
		GinkgoHelper()
		for _, placement := range placements {
			Eventually(h.conditionOf(ctx, placement, "Available")).Should(Equal("True"), placement)
		}
	}

	BeforeAll(func(ctx SpecContext) {
		first, second = startHub(ctx), startHub(ctx)
		edge = program.StartNewcomer(ctx, env.Options{Name: edgeName, Nodes: 1})

		// Both hubs place the application under one name. What they share has another name on the
		// second hub, and only the first has what is alone.
		first.placeApplication(ctx, "shop", "shop", "first")
		second.placeApplication(ctx, "shop", "shop", "second")
		first.placeApplication(ctx, "ours", "shared", "first")
		second.placeApplication(ctx, "theirs", "shared", "second")
		first.placeApplication(ctx, "alone", "alone", "first")

		joining := first.plugin(ctx, "join", edgeName, "--member-kubeconfig="+edge.Admin, "--labels=region=eu", "--timeout=2m")
		Eventually(joining.Err).Should(gbytes.Say("installed the agent on https://"))
		edge.RunAgent(ctx)
		Eventually(joining).WithTimeout(2 * time.Minute).Should(gexec.Exit(0))
		first.kubectl(ctx, "", "label", "membercluster", edgeName, "tier=gold")
		Eventually(first.plugin(ctx, "taint", edgeName, "rack=7:NoSchedule")).Should(gexec.Exit(0))
		areAvailable(ctx, first, "shop", "ours", "alone")
		steady = watchSteadiness(ctx, edge.Cluster, "shop", "shared", "alone")
		Expect(steady.found()).To(BeEmpty())
	})

	It("is rejected when it cannot be moved, and nothing changes", func(ctx SpecContext) {
		same := move(ctx, first, first)
		Expect(same.ExitCode()).To(Equal(1))
		Expect(same.Err).To(gbytes.Say("both contexts point to the same hub"))

		nobody := first.plugin(ctx, "move", "edgy", "--to-kubeconfig="+second.HubKubeconfig(), "--member-kubeconfig="+edge.Admin)
		Eventually(nobody).Should(gexec.Exit(1))
		Expect(nobody.Err).To(gbytes.Say(`no member "edgy": did you mean edge\?`))

		elsewhere := first.plugin(ctx, "move", edgeName, "--to-kubeconfig="+second.HubKubeconfig(), "--member-kubeconfig="+second.HubKubeconfig())
		Eventually(elsewhere).Should(gexec.Exit(1))
		Expect(elsewhere.Err).To(gbytes.Say("has no Secret \"agent-credential\""))

		Expect(first.memberField(ctx, joinedField)()).To(Equal("True"))
		Expect(second.asks(ctx, "get", "clusters.fleet.cattle.io", "--all-namespaces", "--output=name")()).To(BeEmpty())
	})

	It("moves to the other hub with running workloads, labels and taints", func(ctx SpecContext) {
		moved := move(ctx, first, second)
		Expect(moved.ExitCode()).To(Equal(0))
		Expect(string(moved.Out.Contents())).To(Equal("member edge has moved\n"))
		Expect(moved.Err).To(gbytes.Say("the other hub has no placement alone, ours: their resources are retained"))

		Expect(first.memberField(ctx, "{.metadata.name}")()).To(BeEmpty())
		Expect(first.asks(ctx, "get", "clusters.fleet.cattle.io", "--all-namespaces", "--output=name")()).To(BeEmpty())
		Expect(second.memberField(ctx, "{.metadata.labels.region} {.metadata.labels.tier} {.spec.taints[*].key}")()).To(Equal("eu gold rack"))
		Expect(second.memberField(ctx, `{.metadata.annotations.fleetgate\.io/former-hub}`)()).To(Equal(first.uid(ctx)))
		areAvailable(ctx, second, "shop", "theirs")
		Eventually(from(ctx, "shop")).Should(Equal("second"))
		Eventually(from(ctx, "shared")).Should(Equal("second"))

		By("retaining what the second hub does not place: what only the first has, and what does not tolerate the taint")
		Eventually(second.memberField(ctx, heldField)).Should(And(ContainSubstring(" of 2 Works"), ContainSubstring(`"admins-work"`)))
		Expect(from(ctx, "alone")()).To(Equal("first"))
		Expect(steady.found()).To(BeEmpty())
	})

	It("moves back, also when the command is interrupted repeatedly", func(ctx SpecContext) {
		Eventually(func() int { return move(ctx, second, first, "--timeout=1s").ExitCode() }).WithTimeout(3 * time.Minute).Should(Equal(0))

		Expect(second.memberField(ctx, "{.metadata.name}")()).To(BeEmpty())
		Expect(first.memberField(ctx, "{.metadata.labels.region} {.metadata.labels.tier}")()).To(Equal("eu gold"))
		areAvailable(ctx, first, "shop", "ours", "alone")
		Eventually(from(ctx, "shop")).Should(Equal("first"))
		Eventually(from(ctx, "shared")).Should(Equal("first"))
		Eventually(first.memberField(ctx, isHeldField)).ShouldNot(Equal("True"))
		Eventually(func() string {
			return edge.Kubectl(ctx, "", "get", "appliedworks", `--output=jsonpath={.items[*].metadata.annotations.fleetgate\.io/hub}`)
		}).ShouldNot(ContainSubstring(second.uid(ctx)))

		objects, changes := steady.seen()
		AddReportEntry("what was watched", fmt.Sprintf("%d objects, %d changes", objects, changes))
		Expect(changes).To(BeNumerically(">", 0))
		Expect(steady.found()).To(BeEmpty())
	})

	It("is watched by a check that reports violations", func(ctx SpecContext) {
		edge.Kubectl(ctx, "", "patch", "configmap", "settings", "--namespace=shop", "--type=merge", `--patch={"metadata":{"ownerReferences":null}}`)
		Eventually(steady.found).Should(ContainElement(HavePrefix("ConfigMap shop settings has 0 owners")))
		edge.Kubectl(ctx, "", "delete", "configmap", "settings", "--namespace=shared")
		Eventually(steady.found).Should(ContainElement("ConfigMap shared settings was deleted"))
		edge.Kubectl(ctx, "", "delete", "pods", "--all", "--namespace=alone", "--wait=false")
		Eventually(steady.found).Should(ContainElement(HavePrefix("Pod alone web-")))
		Eventually(first.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
	})
})
