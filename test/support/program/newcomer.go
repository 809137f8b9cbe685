// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// Newcomer is a cluster that joins a fleet by what is installed on it.
type Newcomer struct {
	*env.Cluster
	// Admin is the kubeconfig of its administrator.
	Admin string
	// runner has the folder and the programs.
	runner *fleet.Fleet
	agent  *env.Process
	// stop ends what keeps the agent running; nil while nobody does.
	stop context.CancelFunc
	kept sync.WaitGroup
}

// StartNewcomer starts a cluster, and stops it, with its agent, after the spec or the suite.
func StartNewcomer(ctx context.Context, o env.Options) *Newcomer {
	ginkgo.GinkgoHelper()
	cluster, err := env.Start(ctx, o)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func(ctx context.Context) { gomega.Expect(cluster.Stop(ctx)).To(gomega.Succeed()) })
	admin, err := cluster.Kubeconfig("administrator", "system:masters")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	home, err := env.Home()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	n := &Newcomer{Cluster: cluster, Admin: admin,
		runner: &fleet.Fleet{Options: fleet.Options{Dir: ginkgo.GinkgoT().TempDir(), BinDir: filepath.Join(home, "bin")}}}
	ginkgo.DeferCleanup(n.StopAgent)
	return n
}

// Kubectl runs on the cluster as its administrator.
func (n *Newcomer) Kubectl(ctx context.Context, input string, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := n.runner.Kubectl(ctx, n.Admin, input, args...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return out
}

// RunAgent does what a kubelet would: it runs the agent with the arguments of the Deployment
// that is installed on the cluster, as the account of its Pods, and again when it ends.
func (n *Newcomer) RunAgent(ctx context.Context) {
	ginkgo.GinkgoHelper()
	n.RunAgentIn(ctx, "fleet-system")
}

// RunAgentIn does so for a Deployment in another namespace.
func (n *Newcomer) RunAgentIn(ctx context.Context, installed string) {
	ginkgo.GinkgoHelper()
	namespace := "--namespace=" + installed
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
	gomega.Expect(json.Unmarshal([]byte(n.Kubectl(ctx, "", "get", "deployment", "fleet-agent", namespace, "--output=json")), &deployment)).To(gomega.Succeed())
	pod := deployment.Spec.Template.Spec
	gomega.Expect(pod.Containers).To(gomega.HaveLen(1))
	config := rest.AnonymousClientConfig(n.Config())
	config.BearerToken = strings.TrimSpace(n.Kubectl(ctx, "", "create", "token", pod.ServiceAccountName, namespace, "--duration=1h"))
	account := filepath.Join(n.runner.Dir, "account.kubeconfig")
	gomega.Expect(env.WriteKubeconfig(account, config)).To(gomega.Succeed())
	file := filepath.Join(n.runner.Dir, "agent.yaml")
	content := n.Kubectl(ctx, "", "get", "configmap", "fleet-agent-configuration", namespace, `--output=jsonpath={.data.agent\.yaml}`)
	gomega.Expect(os.WriteFile(file, []byte(content), 0o600)).To(gomega.Succeed())
	ports, err := env.FreePorts(1)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	n.agent, err = env.NewProcess(env.ProcessOptions{
		Name: "agent", Dir: n.runner.Dir, Path: filepath.Join(n.runner.BinDir, "agent"),
		// On this machine its ports may be others'.
		Args: append(pod.Containers[0].Args, "--config="+file, "--member-kubeconfig="+account, "--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0])),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(n.agent.Start(ctx)).To(gomega.Succeed())
	n.keepAgent()
}

// keepAgent starts the agent again whenever it ends by itself.
func (n *Newcomer) keepAgent() {
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	n.kept.Go(func() {
		for {
			ended := n.agent.Wait(ctx)
			if ctx.Err() != nil {
				return
			}
			ginkgo.GinkgoWriter.Println("The newcomer's agent has ended, and is started again:", ended)
			if err := n.agent.Start(ctx); err != nil {
				ginkgo.GinkgoWriter.Println("The newcomer's agent cannot be started again:", err)
				return
			}
		}
	})
}

// StopAgent ends the agent, if it runs, and what keeps it running.
func (n *Newcomer) StopAgent(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if n.stop == nil {
		return
	}
	n.stop()
	n.kept.Wait()
	n.stop = nil
	gomega.Expect(n.agent.Stop(ctx)).To(gomega.Succeed())
}
