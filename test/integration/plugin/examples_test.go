// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plugincommand "fleetgate.io/fleetgate/cmd/kubectl-fleetgate/app"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/kubelet"
	"fleetgate.io/fleetgate/test/support/program"
)

// elsewhere lists the examples that need more than a fleet, by their beginning, with the specs that
// run the same commands.
var elsewhere = map[string]string{
	"kubectl fleetgate join member-3 --member-context": "A cluster joins by the plugin",
	"kubectl fleetgate move ":                          "A member that kubectl fleetgate moves, of the suite members",
	"kubectl fleetgate cp ":                            "A Pod of a member is reached by the plugin to copy files",
	"kubectl fleetgate top ":                           "A Pod of a member is reached by the plugin to read its usage",
	"kubectl fleetgate port-forward ":                  "A Pod of a member is reached by the plugin to forward a port",
}

// exampleWorld creates what the examples name: placement shop, runs of staged, and more.
const exampleWorld = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: one}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: shop}
  - {group: scheduling.k8s.io, version: v1, kind: PriorityClass, labelSelector: {matchLabels: {app: shop}}}
  policy: {placementType: PickAll}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: newcomer}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}, taints: [{key: fleetgate.io/unapproved, effect: NoSchedule}]}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: old-member}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: older-member}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}}
`

// shopPriorities is how many PriorityClasses shop selects.
const shopPriorities = 6

// examplePriorities are resources that shop selects by label. Their number is large enough that
// removing them from members needs a confirmation.
func examplePriorities() string {
	var text strings.Builder
	for i := range shopPriorities {
		fmt.Fprintf(&text, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: shop-%d, labels: {app: shop}}\nvalue: %d\n---\n", i, i)
	}
	return text.String()
}

// exampleWeb is a workload of the first member. Its Pods run on the node of that name, and a
// Namespace that its agent retained.
const exampleWeb = `
apiVersion: v1
kind: Namespace
metadata: {name: old-shop, annotations: {fleetgate.io/retained: it contains ConfigMap old-shop/theirs}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {nodeName: member-1, containers: [{name: main, image: web}]}}
`

// exampleFiles are the files that examples read.
var exampleFiles = map[string]string{
	"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-example, namespace: default}\n",
	"placement.yaml": `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: trial}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: default}]
  policy: {placementType: PickAll}
`,
}

// examplesOf returns the example lines of all commands below one, in the order of the help.
func examplesOf(command *cobra.Command) []string {
	var lines []string
	for line := range strings.Lines(command.Example) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "kubectl ") {
			lines = append(lines, line)
		}
	}
	for _, below := range command.Commands() {
		if command.Parent() == nil || command.GroupID != plugincommand.GroupOfKubectl {
			lines = append(lines, examplesOf(below)...)
		}
	}
	return lines
}

// takesAway orders examples: -1 for those that need the initial state, 1 for those that remove what
// others need.
func takesAway(line string) int {
	if strings.HasPrefix(line, "kubectl fleetgate confirm ") {
		return -1 // It needs a placement that no other example has changed.
	}
	for _, verb := range []string{"delete", "drain", "uncordon"} {
		if strings.HasPrefix(line, "kubectl fleetgate "+verb+" ") {
			return 1
		}
	}
	return 0
}

var _ = Describe("Every example of the plugin's help", Ordered, ContinueOnFailure, func() {
	var dir, kubeconfig string
	var own *fleet.Fleet

	// shell runs a line with kubectl and the plugin in PATH.
	shell := func(ctx context.Context, line string) *exec.Cmd {
		command := exec.CommandContext(ctx, "sh", "-c", line)
		command.Dir = dir
		command.Env = append(os.Environ(), "PATH="+dir+":"+own.BinDir+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "HOME="+dir, "TMPDIR="+dir,
			`KUBERNETES_EXEC_INFO={"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,"cluster":{"server":"https://hub.example.org:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/member-1/proxy"}}}`)
		return command
	}
	kubectl := func(ctx context.Context, config, input string, args ...string) string {
		GinkgoHelper()
		out, err := own.Kubectl(ctx, config, input, args...)
		Expect(err).NotTo(HaveOccurred())
		return out
	}

	BeforeAll(func(ctx SpecContext) {
		own = program.Fleet(ctx, fleet.Options{Members: []string{first, second}})
		Expect(own.AwaitAnswers(ctx, time.Minute)).To(Succeed())
		dir = GinkgoT().TempDir()
		kubeconfig = filepath.Join(dir, "config")
		text, err := os.ReadFile(own.HubKubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(kubeconfig, text, 0o600)).To(Succeed())
		for name, text := range exampleFiles {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
		}
		for _, m := range own.Members {
			kubectl(ctx, kubeconfig, "", "label", "membercluster", m.Name, "name="+m.Name, "region=eu")
			admin, err := m.Cluster.Kubeconfig("administrator", "system:masters")
			Expect(err).NotTo(HaveOccurred())
			kubectl(ctx, admin, allowed, "apply", "--filename=-")
		}
		kubectl(ctx, kubeconfig, examplePriorities(), "apply", "--filename=-")
		kubectl(ctx, kubeconfig, exampleWorld, "apply", "--filename=-")
		// A member in clusterNames of a placement cannot be drained.
		kubectl(ctx, kubeconfig, strings.Replace(staged, "PickFixed, clusterNames: [member-1, member-2]", "PickAll", 1), "apply", "--filename=-")
		kubectl(ctx, kubeconfig, "", "wait", "clusterresourceplacement/staged", "--for=condition=ClusterResourcePlacementScheduled", "--timeout=60s")
		kubectl(ctx, kubeconfig, "", "wait", "clusterresourceplacement/shop", "--for=condition=ClusterResourcePlacementAvailable", "--timeout=90s")
		admin, err := own.Members[0].Cluster.Kubeconfig("administrator", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		k := kubelet.Start()
		DeferCleanup(k.Close)
		c, err := own.Members[0].Cluster.Client(scheme.AddToScheme)
		Expect(err).NotTo(HaveOccurred())
		_, err = k.Node(ctx, c, first)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := kubelet.Pod(ctx, c, first, "shop", "web-0")
			return err
		}).Should(Succeed())
		kubectl(ctx, admin, exampleWeb, "apply", "--filename=-")
		kubectl(ctx, admin, "", "wait", "deployment/web", "--namespace=shop", "--for=condition=Available", "--timeout=60s")
		// Two runs go to two snapshots. The second waits for approval and can be rolled back.
		for i, name := range []string{"to-2026-10", "to-2026-11"} {
			kubectl(ctx, kubeconfig, strings.NewReplacer("NAME", name, "STATE", "Run").Replace(updateRun), "apply", "--filename=-")
			waits := func() string { return kubectl(ctx, kubeconfig, "", "get", "clusterapprovalrequests", "--output=name") }
			Eventually(waits).Should(ContainSubstring(name))
			if i == 0 {
				kubectl(ctx, kubeconfig, "", "patch", "configmap", "settings", "--namespace=staged", "--type=merge", "--patch", `{"data":{"version":"two"}}`)
				out, err := shell(ctx, "kubectl fleetgate run approve to-2026-10").CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), string(out))
				kubectl(ctx, kubeconfig, "", "wait", "clusterstagedupdaterun", name, "--for=condition=Succeeded", "--timeout=90s")
			}
		}
	})

	// suspend makes shop wait for the confirmation of a removal. The labels go at once: one that goes
	// after the next snapshot was taken is another, small removal.
	suspend := func(ctx context.Context) {
		GinkgoHelper()
		c, err := own.Hub.Client(scheme.AddToScheme)
		Expect(err).NotTo(HaveOccurred())
		var group errgroup.Group
		for i := range shopPriorities {
			group.Go(func() error {
				class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop-%d", i)}}
				return c.Patch(ctx, class, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":null}}}`)))
			})
		}
		Expect(group.Wait()).To(Succeed())
		kubectl(ctx, kubeconfig, "", "wait", "clusterresourceplacement/shop", "--for=condition=RemovalSuspended", "--timeout=120s")
	}

	lines := examplesOf(plugincommand.NewCommand(genericiooptions.NewTestIOStreamsDiscard()))
	// Examples that remove objects run after those that read them.
	slices.SortStableFunc(lines, func(a, b string) int { return cmp.Compare(takesAway(a), takesAway(b)) })
	for _, line := range lines {
		It(line, func(ctx SpecContext) {
			for beginning, spec := range elsewhere {
				if strings.HasPrefix(line, beginning) {
					Skip("run by: " + spec)
				}
			}
			if strings.HasPrefix(line, "kubectl fleetgate confirm ") {
				suspend(ctx)
			}
			if strings.HasPrefix(line, "kubectl fleetgate console") {
				command := shell(ctx, "exec "+line+" --open=false")
				out, err := command.StdoutPipe()
				Expect(err).NotTo(HaveOccurred())
				Expect(command.Start()).To(Succeed())
				Expect(bufio.NewReader(out).ReadString('\n')).To(HavePrefix("The console is at http://"))
				Expect(command.Process.Signal(os.Interrupt)).To(Succeed())
				Expect(command.Wait()).To(Succeed())
				return
			}
			out, err := shell(ctx, line).CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == 2 && (strings.Contains(line, " why ") || strings.Contains(line, " diff ")) {
				return // The exit code reports problems, and the output names them.
			}
			if errors.As(err, &exit) && exit.ExitCode() == 1 && strings.HasPrefix(line, "kubectl fleetgate retained list") {
				Expect(string(out)).To(And(ContainSubstring("old-shop"), ContainSubstring("is not connected")))
				return // Some members of the example have no agent.
			}
			Expect(err).NotTo(HaveOccurred(), string(out))
		})
	}
})
