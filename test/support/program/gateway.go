// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package program runs fleetgate's programs for suites as an administrator would.
package program

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	configv1alpha1 "fleetgate.io/fleetgate/pkg/apis/config/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
)

// gatewayUser is whom gateway-rbac.yaml gives rights.
const gatewayUser = "fleetgate:gateway"

// Gateway starts the gateway's program on a hub, with family ocm, and no rights but a
// gateway's. It is stopped after the spec, whose log has its own if it failed. The suite's
// folder is two below test.
func Gateway(ctx context.Context, at *env.Cluster, args ...string) *env.Process {
	ginkgo.GinkgoHelper()
	process := prepare(ctx, at, alive, args...)
	gomega.Expect(process.Start(ctx)).To(gomega.Succeed())
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) {
		if log, err := os.ReadFile(process.LogPath()); err == nil && ginkgo.CurrentSpecReport().Failed() {
			ginkgo.GinkgoWriter.Println(string(log))
		}
		gomega.Expect(process.Stop(ctx)).To(gomega.Succeed())
	})
	return process
}

// Configuration is the flag of a file with fields of GatewayConfiguration.
func Configuration(fields string) string {
	ginkgo.GinkgoHelper()
	flag, err := env.ConfigFlag(ginkgo.GinkgoT().TempDir(), configv1alpha1.GatewayKind, fields)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return flag
}

// Refused starts the gateway's program as Gateway does, and returns what it logged until it ended
// by itself, as a gateway does that cannot install what it needs.
func Refused(ctx context.Context, at *env.Cluster, args ...string) string {
	ginkgo.GinkgoHelper()
	process := prepare(ctx, at, func(int) func(context.Context) error { return nil }, args...)
	gomega.Expect(process.Start(ctx)).To(gomega.Succeed())
	gomega.Expect(process.Wait(ctx)).NotTo(gomega.Succeed(), "it still runs")
	log, err := os.ReadFile(process.LogPath())
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return string(log)
}

// alive is ready when the process says that it lives.
func alive(port int) func(context.Context) error {
	return env.Answers(http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/livez", port))
}

// prepare makes the process of a gateway, which is ready by what is asked of its port for probes.
func prepare(ctx context.Context, at *env.Cluster, ready func(port int) func(context.Context) error, args ...string) *env.Process {
	ginkgo.GinkgoHelper()
	out, err := Kubectl(ctx, at, "", "apply", "--filename", filepath.Join("..", "..", "support", "fleet", "gateway-rbac.yaml"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), out)
	kubeconfig, err := at.Kubeconfig(gatewayUser)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	dir, err := os.MkdirTemp(ginkgo.GinkgoT().TempDir(), "gateway")
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "gateway"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ports, err := env.FreePorts(3)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	process, err := env.NewProcess(env.ProcessOptions{
		Name: "gateway", Dir: dir, Path: path, Grace: 40 * time.Second, Ready: ready(ports[0]),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--apis=ocm", "--bind-address=127.0.0.1", "--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0]),
			fmt.Sprintf("--secure-port=%d", ports[1]), fmt.Sprintf("--webhook-port=%d", ports[2]),
		}, args...),
	})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return process
}

// Kubectl runs kubectl as an administrator of a cluster, and returns what it says on both of
// its outputs.
func Kubectl(ctx context.Context, at *env.Cluster, stdin string, args ...string) (string, error) {
	ginkgo.GinkgoHelper()
	return KubectlAs(ctx, at, "reader", []string{"system:masters"}, stdin, args...)
}

// KubectlAs does so as a user with groups.
func KubectlAs(ctx context.Context, at *env.Cluster, user string, groups []string, stdin string, args ...string) (string, error) {
	ginkgo.GinkgoHelper()
	kubeconfig, err := at.Kubeconfig(user, groups...)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return string(out), err
}
