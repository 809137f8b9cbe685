// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/build"
	"fleetgate.io/fleetgate/test/env"
	"fleetgate.io/fleetgate/test/expect"
)

// startProgram runs the agent's program instead of the suite's agent, for ManifestWorks
// and nothing else.
func startProgram(ctx context.Context) *env.Process {
	GinkgoHelper()
	agent.Stop()
	DeferCleanup(func() { agent = startAgent(agentOptions{}) })
	atHub, err := hub.Kubeconfig(agentUser)
	Expect(err).NotTo(HaveOccurred())
	atCluster, err := member.Kubeconfig("works-only", "system:masters")
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
	It("applies ManifestWorks and makes nothing of a member of the cluster", func(ctx SpecContext) {
		before := namespaces(ctx)
		startProgram(ctx)
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "program", workv1.ManifestWorkSpec{}, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(conditions(ctx, "program")).Should(beDone())
		Expect(record(ctx, "program").Spec.AgentID).To(Equal(agentID))
		Expect(namespaces(ctx)).To(ConsistOf(append(before, ns)))
		removeWork(ctx, "program")
	})

	It("ends well though it is killed again and again and the cluster does not answer for a while", func(ctx SpecContext) {
		const works, objects = 20, 5
		process, ns := startProgram(ctx), expect.FreshNamespace(ctx, memberClient)
		again := func() {
			time.Sleep(700 * time.Millisecond) // somewhere in the middle
			Expect(process.Kill()).To(Succeed())
			Expect(process.Restart(ctx)).To(Succeed())
		}
		for n := range works {
			var texts []string
			for i := range objects {
				texts = append(texts, build.ConfigMapText(ns, fmt.Sprintf("c-%d-%d", n, i), "x", "1"))
			}
			createWork(ctx, fmt.Sprintf("killed-%d", n), workv1.ManifestWorkSpec{}, texts...)
			if n%7 == 3 {
				again()
			}
		}
		Expect(member.Freeze()).To(Succeed())
		time.Sleep(5 * time.Second)
		Expect(member.Thaw()).To(Succeed())
		again()
		for n := range works {
			Eventually(conditions(ctx, fmt.Sprintf("killed-%d", n))).Should(beDone())
			Eventually(ledger(ctx, fmt.Sprintf("killed-%d", n))).Should(HaveLen(objects))
		}
		list := &corev1.ConfigMapList{}
		Expect(memberClient.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"app": "spec"})).To(Succeed())
		Expect(list.Items).To(HaveLen(works * objects))
		Expect(list.Items).To(HaveEach(HaveField("OwnerReferences", HaveLen(1))))

		By("removing all of it under the same circumstances")
		Expect(hubClient.DeleteAllOf(ctx, &workv1.ManifestWork{}, client.InNamespace(clusterName))).To(Succeed())
		again()
		Eventually(func() int { return len(records(ctx, agentID, "")) }).Should(BeZero())
		Eventually(func(g Gomega) {
			g.Expect(memberClient.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"app": "spec"})).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}).Should(Succeed())
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
