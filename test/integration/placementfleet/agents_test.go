// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placementfleet

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/transcript"
)

const agentsNamespace = "agents"

var _ = Describe("docs/how-to/upgrade.md", func() {
	It("shows commands that roll out another image to the agents' Deployments in stages, and roll it back", func(ctx SpecContext) {
		page, err := transcript.Read("../../../docs/how-to/upgrade.md")
		Expect(err).NotTo(HaveOccurred())
		const least = 10
		Expect(len(page.Commands)).To(BeNumerically(">", least))
		dir := GinkgoT().TempDir()
		for name, text := range page.Files {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
		}
		relabel(ctx, "ring", map[string]string{"member-2": "canary"})
		before := map[string]types.UID{}
		for name := range members {
			before[name] = deployAgent(ctx, name)
		}
		DeferCleanup(func(ctx context.Context) {
			_, err := running.Kubectl(ctx, running.HubKubeconfig(), "", "delete", "--filename="+filepath.Join(dir, "agents.yaml"), "--timeout=60s")
			Expect(err).NotTo(HaveOccurred())
			for name := range members {
				Expect(agentOn(ctx, name).UID).To(Equal(before[name]), "the agents stay")
			}
		})

		// After each command, these are the image tags of the agents.
		expected := map[string]string{
			"apply --filename=run.yaml":          "v0.1.0 v0.1.0 v0.1.0",
			"agent-upgrade-after-canary --outp":  "v0.1.0 v0.2.0 v0.1.0",
			"stagedupdaterun agent-upgrade":      "v0.2.0 v0.2.0 v0.2.0",
			"agent-back-after-canary --output":   "v0.2.0 v0.1.0 v0.2.0",
			"get stagedupdaterun agent-back":     "v0.1.0 v0.1.0 v0.1.0",
			"get stagedupdaterun agent-adopt --": "v0.1.0 v0.1.0 v0.1.0",
		}
		for _, c := range page.Commands {
			By(c.Who + "$ " + c.Line)
			Expect(c.Who).To(Equal("hub"))
			typed := func(ctx context.Context) (string, error) { return typedIn(ctx, dir, c.Line) }
			if strings.Contains(c.Line, " get ") && !strings.Contains(c.Line, " replace ") {
				Eventually(typed).WithContext(ctx).Should(MatchRegexp(c.Pattern()))
			} else {
				Expect(typed(ctx)).To(MatchRegexp(c.Pattern()))
			}
			for part, images := range expected {
				if strings.Contains(c.Line, part) {
					Expect(agentImages(ctx)).To(Equal(images))
				}
			}
		}
		for name := range members {
			Expect(agentOn(ctx, name).UID).To(Equal(before[name]))
			Expect(agentOn(ctx, name).Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--of-helm"}), "only the image changed")
		}
	})
})

// typedIn runs a line in a folder as the hub's administrator and returns all its output.
func typedIn(ctx context.Context, dir, line string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", line)
	command.Dir = dir
	command.Env = append(os.Environ(), "HOME="+dir, "PATH="+running.BinDir+":"+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(running.Hub.Dir, env.BreakGlass+".kubeconfig"))
	out, err := command.CombinedOutput()
	GinkgoWriter.Printf("%s\n", out)
	return string(out), err
}

// deployAgent creates on a member what Helm creates: a Deployment that looks like an agent's.
func deployAgent(ctx context.Context, member string) types.UID {
	GinkgoHelper()
	c := members[member]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentsNamespace}}
	Expect(c.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(c.Delete(ctx, namespace)).To(Succeed()) })
	labels := map[string]string{"app": "fleet-agent"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: agentsNamespace, Name: "fleet-agent"}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "agent", Image: "registry.example.org/fleetgate/agent:v0.1.0", Args: []string{"--of-helm"},
	}}
	Expect(c.Create(ctx, deployment, client.FieldOwner("helm"))).To(Succeed())
	return deployment.UID
}

func agentOn(ctx context.Context, member string) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(members[member].Get(ctx, client.ObjectKey{Namespace: agentsNamespace, Name: "fleet-agent"}, deployment)).To(Succeed())
	return deployment
}

// agentImages returns the tags on member-1, member-2 and member-3.
func agentImages(ctx context.Context) string {
	GinkgoHelper()
	var tags []string
	for _, member := range []string{"member-1", "member-2", "member-3"} {
		image := agentOn(ctx, member).Spec.Template.Spec.Containers[0].Image
		tags = append(tags, image[strings.LastIndex(image, ":")+1:])
	}
	return strings.Join(tags, " ")
}
