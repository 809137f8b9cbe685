// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// startProgram runs the agent's program in place of the suite's agent, for ManifestWorks only. It
// runs outside the cluster and uses a kubeconfig.
func startProgram(ctx context.Context, atCluster string) *env.Process {
	GinkgoHelper()
	agent.Stop()
	DeferCleanup(func() { agent = startAgent(agentOptions{}) })
	atHub, err := hub.Kubeconfig(agentUser)
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp(GinkgoT().TempDir(), "agent")
	Expect(err).NotTo(HaveOccurred())
	program, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "agent"))
	Expect(err).NotTo(HaveOccurred())
	process, err := env.NewProcess(env.ProcessOptions{Name: "agent", Dir: dir, Path: program, Args: []string{
		"--components=works", "--hub-kubeconfig=" + atHub, "--member-kubeconfig=" + atCluster, "--member-name=" + clusterName,
		"--agent-id=" + agentID, "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
	}})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start(ctx)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(process.Stop(ctx)).To(Succeed()) })
	return process
}

var _ = Describe("The agent's program with --components=works", func() {
	It("applies ManifestWorks and creates nothing else on the cluster", func(ctx SpecContext) {
		before := namespaces(ctx)
		atCluster, err := member.Kubeconfig("works-only", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		startProgram(ctx, atCluster)
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "program", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "program")).Should(beDone())
		Expect(record(ctx, "program").Spec.AgentID).To(Equal(agentID))
		Expect(namespaces(ctx)).To(ConsistOf(append(before, ns)))
		removeWork(ctx, "program")
	})
})

func namespaces(ctx context.Context) []string {
	GinkgoHelper()
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = "v1", "NamespaceList"
	Expect(memberClient.List(ctx, list)).To(Succeed())
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}
