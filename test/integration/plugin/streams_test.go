// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"

	"fleetgate.io/fleetgate/test/support/kubelet"
)

// figures are the metrics of the node and the Pod. Custom resources stand in for a metrics server.
const figures = `
apiVersion: metrics.k8s.io/v1beta1
kind: NodeMetrics
metadata: {name: streaming}
timestamp: "2026-11-25T00:00:00Z"
window: 30s
usage: {cpu: 1500m, memory: 2Gi}
---
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: talks, namespace: default}
timestamp: "2026-11-25T00:00:00Z"
window: 30s
containers: [{name: main, usage: {cpu: 250m, memory: 64Mi}}]
`

// figureKind is the CRD of one metrics kind, with all fields allowed.
func figureKind(plural, kind, scope string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.metrics.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: metrics.k8s.io
  scope: ` + scope + `
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---`
}

var _ = Describe("A Pod of a member is reached by the plugin", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		onMember(ctx, first, allowed, "apply", "--filename=-")
		k := kubelet.Start()
		DeferCleanup(k.Close)
		c, err := running.Members[0].Cluster.Client(scheme.AddToScheme)
		Expect(err).NotTo(HaveOccurred())
		node, err := k.Node(ctx, c, "streaming")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, node)).To(Succeed()) })
		Eventually(func() error {
			_, err := kubelet.Pod(ctx, c, node.Name, "default", "talks")
			return err
		}).Should(Succeed())
		onMember(ctx, first, figureKind("nodes", "NodeMetrics", "Cluster")+figureKind("pods", "PodMetrics", "Namespaced"), "apply", "--filename=-")
		Eventually(func() error {
			_, err := running.Kubectl(ctx, adminOf(first), figures, "apply", "--filename=-")
			return err
		}).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			onMember(ctx, first, "", "delete", "customresourcedefinition", "nodes.metrics.k8s.io", "pods.metrics.k8s.io")
		})
	})

	It("to read its log", func(ctx SpecContext) {
		Expect(plugin(ctx, "logs", "talks", "-n", "default", "--member", first)).To(Equal(kubelet.FirstLine + "\n"))
	})

	It("to run commands", func(ctx SpecContext) {
		Expect(plugin(ctx, "exec", "talks", "-n", "default", "--member", first, "--", "echo", "there")).To(Equal("there\n"))
		_, code, _ := tries(ctx, "exec", "talks", "-n", "default", "--member", first, "--", "sh", "-c", "exit 7")
		Expect(code).To(Equal(7), "it has the command's exit code")
	})

	It("to copy files", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "dump"), []byte("what it holds"), 0o600)).To(Succeed())
		plugin(ctx, "cp", "default/talks:"+filepath.Join(dir, "dump"), filepath.Join(dir, "copy"), "--member", first)
		Expect(os.ReadFile(filepath.Join(dir, "copy"))).To(BeEquivalentTo("what it holds"))
	})

	It("to read its usage", func(ctx SpecContext) {
		Expect(plugin(ctx, "top", "nodes", "streaming", "--member", first)).To(MatchRegexp(`streaming +1500m +2048Mi`))
		Expect(plugin(ctx, "top", "pods", "-n", "default", "--member", first)).To(MatchRegexp(`talks +250m +64Mi`))
	})

	It("to read its events, on one member and on many", func(ctx SpecContext) {
		onMember(ctx, first, `
apiVersion: v1
kind: Event
metadata: {name: talks.1, namespace: default}
type: Warning
reason: Loud
message: it talks too much
involvedObject: {kind: Pod, namespace: default, name: talks}
lastTimestamp: "2026-11-25T00:00:00Z"
`, "apply", "--filename=-")
		Expect(plugin(ctx, "events", "-n", "default", "--member", first)).To(ContainSubstring("it talks too much"))
		Eventually(says(ctx, "events", "-n", "default", "--members", "all")).Should(ContainSubstring("it talks too much"))
	})

	It("to forward a port", func(ctx SpecContext) {
		command := exec.CommandContext(ctx, filepath.Join(running.BinDir, "kubectl-fleetgate"), "--kubeconfig="+running.HubKubeconfig(),
			"port-forward", "pod/talks", ":80", "-n", "default", "--member", first)
		command.Env = append(os.Environ(), "HOME="+running.Dir)
		out, err := command.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		DeferCleanup(func() {
			Expect(command.Process.Signal(os.Interrupt)).To(Succeed())
			_ = command.Wait() // The exit status after a signal is kubectl's.
		})
		line, err := bufio.NewReader(out).ReadString('\n')
		Expect(err).NotTo(HaveOccurred())
		Expect(line).To(MatchRegexp(regexp.QuoteMeta("Forwarding from 127.0.0.1:") + `\d+ -> 80`))
	})

	It("and the plugin reports an unknown Pod", func(ctx SpecContext) {
		_, code, stderr := tries(ctx, "logs", "talk", "-n", "default", "--member", first)
		Expect(code).To(Equal(1))
		Expect(strings.ToLower(stderr)).To(ContainSubstring(`pods "talk" not found`))
	})
})
