// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
)

// commands is the block of a document, between fences, that holds the text.
func commands(document, text string) string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(home, document))
	Expect(err).NotTo(HaveOccurred())
	// Blocks in numbered steps are indented, as Markdown has it.
	for _, found := range regexp.MustCompile("(?ms)^( *)```[a-z]*\n(.*?)^ *```$").FindAllStringSubmatch(string(page), -1) {
		indent, block := found[1], found[2]
		if strings.Contains(block, text) {
			return strings.ReplaceAll("\n"+block, "\n"+indent, "\n")[1:]
		}
	}
	Fail(document + " has no block of commands with: " + text)
	return ""
}

// run runs commands as the administrator of a cluster types them, in the project's folder
// but for the files that they write, and returns what they print.
func run(ctx context.Context, cluster *env.Cluster, script string) (string, error) {
	// The pages write values.yaml into the folder in which they are, and install a release; here are the
	// charts of the checkout, with images that the nodes have.
	script = strings.NewReplacer(`"oci://$REGISTRY/charts/gateway" --version "$VERSION"`, "charts/gateway", `"oci://$REGISTRY/charts/agent" --version "$VERSION"`, "charts/agent",
		"> values.yaml", `> "$WORK/values.yaml"`, "--values values.yaml", `--values "$WORK/values.yaml"`, "-f values.yaml", `-f "$WORK/values.yaml"`).Replace(script)
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir = home
	command.Env = append(environment(), "KUBECONFIG="+breakGlass(cluster))
	out, err := command.CombinedOutput()
	GinkgoWriter.Printf("%s$ %s\n%s\n", cluster.Name, script, out)
	return string(out), err
}

// environment has the programs of this project, and nothing that the user keeps at home.
func environment() []string {
	return append(os.Environ(),
		"PATH="+filepath.Join(home, ".fleetgate", "bin")+":"+os.Getenv("PATH"), "HOME="+work, "WORK="+work, "CLUSTER_CLIENT_ID="+clientID)
}

// throughHub is kubectl on the member, as a user of the hub.
func throughHub(ctx context.Context, args ...string) *exec.Cmd {
	GinkgoHelper()
	path := filepath.Join(work, "through-hub.kubeconfig")
	if _, err := os.Stat(path); err != nil {
		config, err := hub.ConfigFor("admin", "fleetgate:admins")
		Expect(err).NotTo(HaveOccurred())
		config.Host += "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/" + memberName + "/proxy"
		Expect(env.WriteKubeconfig(path, config)).To(Succeed())
	}
	command := exec.CommandContext(ctx, filepath.Join(home, ".fleetgate", "bin", "kubectl"), append([]string{"--kubeconfig=" + path, "--namespace=shop"}, args...)...)
	command.Env = environment()
	return command
}
