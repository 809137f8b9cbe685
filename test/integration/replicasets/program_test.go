// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/test/env"
)

// gatewayUser is whom gateway-rbac.yaml gives rights.
const gatewayUser = "fleetgate:gateway"

// program is the gateway's program on a hub, with no rights but a gateway's.
func program(ctx context.Context, at *env.Cluster, args ...string) *env.Process {
	GinkgoHelper()
	admin, err := at.Kubeconfig("reader", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, admin, "apply", "--filename", filepath.Join("..", "..", "fleet", "gateway-rbac.yaml"))
	kubeconfig, err := at.Kubeconfig(gatewayUser)
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp(GinkgoT().TempDir(), "gateway")
	Expect(err).NotTo(HaveOccurred())
	path, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "gateway"))
	Expect(err).NotTo(HaveOccurred())
	ports, err := env.FreePorts(3)
	Expect(err).NotTo(HaveOccurred())
	process, err := env.NewProcess(env.ProcessOptions{
		Name: "gateway", Dir: dir, Path: path, Grace: 40 * time.Second, Ready: alive(ports[0]),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--apis=ocm", "--ocm=works", "--bind-address=127.0.0.1", "--metrics-bind-address=0",
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0]),
			fmt.Sprintf("--secure-port=%d", ports[1]), fmt.Sprintf("--webhook-port=%d", ports[2]),
		}, args...),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start(ctx)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		if log, err := os.ReadFile(process.LogPath()); err == nil && CurrentSpecReport().Failed() {
			GinkgoWriter.Println(string(log))
		}
		Expect(process.Stop(ctx)).To(Succeed())
	})
	return process
}

func alive(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/livez", port), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/livez answers %s", response.Status)
		}
		return nil
	}
}

// kubectl returns what it says on both of its outputs, and whether it went well.
func tryKubectl(ctx context.Context, kubeconfig, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl"), append([]string{"--kubeconfig", kubeconfig}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return string(out), err
}

func kubectl(ctx context.Context, kubeconfig string, args ...string) {
	GinkgoHelper()
	out, err := tryKubectl(ctx, kubeconfig, "", args...)
	Expect(err).NotTo(HaveOccurred(), out)
}

// names are those of the ManifestWorks of a set.
func names(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) []string {
	GinkgoHelper()
	var all []string
	for _, work := range worksOf(ctx, set) {
		all = append(all, work.Namespace+"/"+work.Name)
	}
	return all
}

var _ = Describe("The gateway's program with --apis=ocm --ocm=works", func() {
	It("makes no ManifestWork twice though it is killed again and again in a rollout", func(ctx SpecContext) {
		const clusters = 60
		gateway.stop()
		DeferCleanup(func() { gateway = start() })
		process := program(ctx, hub, "--components=controllers", "--leader-elect=false")
		b := newBed(ctx, clusters)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 20, nil))
		rollOut := func(colour string) {
			GinkgoHelper()
			reported := map[string]bool{}
			for len(reported) < clusters {
				var now []string
				Eventually(func() []string {
					now = nil
					for _, one := range colours(ctx, set)() {
						if cluster, ok := strings.CutSuffix(one, "="+colour); ok && !reported[cluster] {
							now = append(now, cluster)
						}
					}
					return now
				}).ShouldNot(BeEmpty())
				Expect(process.Kill()).To(Succeed())
				done(ctx, set, now...)
				for _, cluster := range now {
					reported[cluster] = true
				}
				Expect(process.Restart(ctx)).To(Succeed())
			}
		}
		rollOut("blue")
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		made := names(ctx, set)
		Expect(made).To(HaveLen(clusters))

		By("another template, under the same circumstances")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template("red") })
		rollOut("red")
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		Expect(names(ctx, set)).To(ConsistOf(made))
	})
})
