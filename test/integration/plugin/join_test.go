// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/env"
)

// newcomer is a cluster that joins.
type newcomer struct {
	*env.Cluster
	// admin is a kubeconfig of its administrator, dir a folder for files.
	admin, dir string
	// agent is that which runs there; nil so far.
	agent *env.Process
}

func startNewcomer(ctx context.Context, name string) *newcomer {
	GinkgoHelper()
	cluster, err := env.Start(ctx, env.Options{Name: name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(cluster.Stop(ctx)).To(Succeed()) })
	admin, err := cluster.Kubeconfig("administrator", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	return &newcomer{Cluster: cluster, admin: admin, dir: GinkgoT().TempDir()}
}

func (n *newcomer) kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	out, err := running.Kubectl(ctx, n.admin, input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// runAgent does what a kubelet would: it runs the agent with the arguments of the Deployment
// that is installed there, as the account of its Pods.
func (n *newcomer) runAgent(ctx context.Context) {
	GinkgoHelper()
	const namespace = "--namespace=fleet-system"
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					ServiceAccountName string
					Containers         []struct{ Args []string }
				}
			}
		}
	}
	Expect(json.Unmarshal([]byte(n.kubectl(ctx, "", "get", "deployment", "fleet-agent", namespace, "--output=json")), &deployment)).To(Succeed())
	pod := deployment.Spec.Template.Spec
	Expect(pod.Containers).To(HaveLen(1))
	config := rest.AnonymousClientConfig(n.Config())
	config.BearerToken = strings.TrimSpace(n.kubectl(ctx, "", "create", "token", pod.ServiceAccountName, namespace, "--duration=1h"))
	account := filepath.Join(n.dir, "account.kubeconfig")
	Expect(env.WriteKubeconfig(account, config)).To(Succeed())
	ports, err := env.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	n.agent, err = env.NewProcess(env.ProcessOptions{
		Name: "agent", Dir: n.dir, Path: filepath.Join(running.BinDir, "agent"),
		// On this machine its ports may be others'.
		Args: append(pod.Containers[0].Args, "--member-kubeconfig="+account, "--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0])),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(n.agent.Start(ctx)).To(Succeed())
}

var _ = Describe("A cluster joins by the plugin", Ordered, func() {
	var edge *newcomer

	BeforeAll(func(ctx SpecContext) { edge = startNewcomer(ctx, "edge") })
	AfterAll(func(ctx SpecContext) {
		if edge.agent != nil {
			Expect(edge.agent.Stop(ctx)).To(Succeed())
		}
	})

	It("by what is printed, or is told what is in the way", func(ctx SpecContext) {
		printed := plugin(ctx, "join", "printed", "--print", "--image=registry.example.com/agent:v1")
		Expect(printed).To(And(ContainSubstring("kind: Deployment"), ContainSubstring("registry.example.com/agent:v1"), ContainSubstring("token:")))

		_, code, stderr := tries(ctx, "join", "edge", "--member-kubeconfig="+edge.admin, "--timeout=3s")
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring("the agent is installed"), ContainSubstring("the agent of edge has not registered: see what its agent says")))
	})

	It("from start to end, with the rights that the chart gives", func(ctx SpecContext) {
		join := exec.CommandContext(ctx, filepath.Join(running.BinDir, "kubectl-fleetgate"), "join", "edge", "--kubeconfig="+running.HubKubeconfig(), "--member-kubeconfig="+edge.admin, "--timeout=2m")
		join.Env = append(os.Environ(), "HOME="+running.Dir, "KUBECONFIG=")
		joining, err := gexec.Start(join, GinkgoWriter, GinkgoWriter)
		Expect(err).NotTo(HaveOccurred())
		Eventually(joining.Err).Should(gbytes.Say(`token clusters/\S+ is made, for Cluster edge alone`))
		Eventually(joining.Err).Should(gbytes.Say("the agent is installed on https://"))
		Eventually(joining.Err).Should(gbytes.Say("the agent of edge has not registered"))
		edge.runAgent(ctx)
		Eventually(joining).Should(gexec.Exit(0))
		Expect(joining.Out).To(gbytes.Say("^member edge has joined\n$"))
		Eventually(says(ctx, "members", "edge")).Should(MatchRegexp(`edge +True +Yes`))

		_, code, stderr := tries(ctx, "join", "edge", "--member-kubeconfig="+edge.admin)
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`member "edge" is there already`))
	})

	It("and why says which right its agent has lost", func(ctx SpecContext) {
		edge.kubectl(ctx, "", "delete", "clusterrolebinding", "fleetgate:fleet-system:fleet-agent:placement")
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
		}).Should(And(HavePrefix("2 Namespace rightless on member edge: not applied: The agent may not"), ContainSubstring("namespaces"),
			ContainSubstring("To do: give the agent's role on member edge the right that is named")))
		edge.kubectl(ctx, "", "create", "clusterrolebinding", "fleetgate:fleet-system:fleet-agent:placement", "--clusterrole=cluster-admin", "--serviceaccount=fleet-system:fleet-agent")
		hub(ctx, "", "label", "namespace", "rightless", "tried=again") // It would be tried again later anyway.
		Eventually(says(ctx, "why", "rightless", "--member", "edge")).Should(ContainSubstring("is as it should be"))
	})

	It("and leaves again", func(ctx SpecContext) {
		hub(ctx, "", "delete", "clusterresourceplacement", "rightless", "--ignore-not-found")
		Expect(plugin(ctx, "leave", "edge")).To(Equal("member edge has left\n"))
		Expect(says(ctx, "why", "member/edge")()).To(ContainSubstring("keeps it from joining again"))
	})
})
