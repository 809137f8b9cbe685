// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"

	"fleetgate.io/fleetgate/test/support/env"
)

// hub and member are shared by most specs, which must leave them running.
var hub, member *env.Cluster

func TestEnv(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Control planes", Label("integration"))
}

var _ = BeforeSuite(func(ctx SpecContext) {
	clusters, err := env.StartAll(ctx,
		env.Options{Name: "hub", Dir: GinkgoT().TempDir(), Audit: true, Progress: progress},
		env.Options{Name: "member-1", Dir: GinkgoT().TempDir(), Nodes: 2, Progress: progress},
	)
	Expect(err).NotTo(HaveOccurred())
	hub, member = clusters[0], clusters[1]
})

var _ = AfterSuite(func(ctx SpecContext) {
	for _, c := range []*env.Cluster{hub, member} {
		if c == nil {
			continue
		}
		Expect(c.Stop(ctx)).To(Succeed())
		expectNothingLeft(c)
	}
})

func progress(line string) { GinkgoWriter.Println(line) }

func expectNothingLeft(c *env.Cluster) {
	GinkgoHelper()
	for _, p := range c.Processes() {
		// The parent learns of the end a moment later than the process that ended it.
		Eventually(p.Running).Should(BeFalse(), p.Name())
		expectGone(GinkgoTB(), p.PID())
	}
}

// client is a break-glass client.
func client(c *env.Cluster) kubernetes.Interface {
	GinkgoHelper()
	return clientOf(kubernetes.NewForConfig(c.Config()))
}

func clientOf(client kubernetes.Interface, err error) kubernetes.Interface {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return client
}

// kubectl runs as the break-glass administrator with this standard input.
func kubectl(ctx context.Context, c *env.Cluster, input string, args ...string) string {
	GinkgoHelper()
	out, err := tryKubectl(ctx, c, input, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

func tryKubectl(ctx context.Context, c *env.Cluster, input string, args ...string) (string, error) {
	GinkgoHelper()
	path, err := env.Program("kubectl")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := c.Dir + "/" + env.BreakGlass + ".kubeconfig"
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
