// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/test/support/env"
)

const hostedPage = "docs/how-to/hosted-agents.md"

// hostsAnAgent runs the agent of a cluster without nodes on the first member's node.
func hostsAnAgent(ctx SpecContext) {
	apart, err := env.Start(ctx, env.Options{
		Name: "apart", Dir: filepath.Join(work, "apart"), Address: hubAddress, Progress: func(line string) { GinkgoWriter.Println(line) },
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(apart.Stop(ctx)).To(Succeed()) })
	kubeconfig, err := os.ReadFile(breakGlass(apart))
	Expect(err).NotTo(HaveOccurred())
	reachable := strings.ReplaceAll(string(kubeconfig), apart.URL, apart.AddressURL())
	Expect(os.WriteFile(filepath.Join(work, "member-1.kubeconfig"), []byte(reachable), 0o600)).To(Succeed())
	for _, block := range []string{"--show-only=templates/rbac.yaml", "kubernetes.io/service-account.name", "--set member.kubeconfigSecret"} {
		script := strings.ReplaceAll(commands(hostedPage, block), "charts/agent", filepath.Join(home, "charts", "agent"))
		Expect(run(ctx, member, "cd \"$WORK\"; REGISTRY=ghcr.io/fleetgate\n"+script)).Error().NotTo(HaveOccurred())
	}

	apartClient, err := apart.Client()
	Expect(err).NotTo(HaveOccurred())
	system := &corev1.Namespace{}
	Expect(apartClient.Get(ctx, client.ObjectKey{Name: "kube-system"}, system)).To(Succeed())
	name := registrationv1alpha1.ClusterName(string(system.UID))
	Eventually(func() (string, error) { return run(ctx, hub, "kubectl get membercluster "+name) }).Should(MatchRegexp(name + ` +True`))
	Eventually(func() (string, error) { return run(ctx, apart, "kubectl get configmaps -n shop -o name") }).Should(ContainSubstring("configmap/web"))
	Expect(run(ctx, apart, "kubectl get pods -n hosted-member-1 -o name")).To(BeEmpty(), "nothing of the agent runs there")

	Expect(run(ctx, hub, "kubectl delete membercluster "+name+" --timeout=2m")).Error().NotTo(HaveOccurred())
	Expect(run(ctx, member, "helm uninstall fleet-agent --namespace=hosted-member-1 --wait && kubectl delete namespace hosted-member-1")).Error().NotTo(HaveOccurred())
}
