// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

var _ = Describe("The key with which the hub signs tokens", func() {
	It("can be replaced in the order that Kubernetes documents, and no agent registers again", func(ctx SpecContext) {
		f := start(ctx, fleet.Options{Members: []string{member}, Tunnel: fleet.TunnelNative})
		m := f.Members[0]
		pki := func(name string) string { return filepath.Join(f.Hub.Dir, "pki", name) }
		former, err := os.ReadFile(pki("sa.pub"))
		Expect(err).NotTo(HaveOccurred())
		// become restarts the API server so that it signs with one key and accepts others.
		become := func(private []byte, public ...[]byte) {
			GinkgoHelper()
			if private != nil {
				Expect(os.WriteFile(pki("sa.key"), private, 0o600)).To(Succeed())
			}
			Expect(os.WriteFile(pki("sa.pub"), slices.Concat(public...), 0o600)).To(Succeed())
			Expect(f.Hub.APIServer.Restart(ctx)).To(Succeed())
		}
		registrations := countRegistrations(ctx, f)
		token := tokenOf(ctx, m)

		By("signing with the next key and accepting the previous one")
		private, public, err := env.NewSigningKey()
		Expect(err).NotTo(HaveOccurred())
		become(private, public, former)
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
		Expect(m.Agent.Restart(ctx)).To(Succeed(), "an agent renews its token at start, and every hour")
		Eventually(func(ctx context.Context) string { return headerOf(tokenOf(ctx, m)) }).WithContext(ctx).ShouldNot(Equal(headerOf(token)))
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed(), "an agent that starts while the hub is unavailable exits, and this suite does not restart it")

		By("accepting the next key only")
		become(nil, public)
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
		Expect(m.Agent.Restart(ctx)).To(Succeed(), "the hub accepts its token")
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
		Expect(countRegistrations(ctx, f)).To(Equal(registrations), "no agent registered again")
	})
})

// headerOf returns the header of a token, which names its key.
func headerOf(token string) string {
	header, _, _ := strings.Cut(token, ".")
	return header
}

// tokenOf returns the hub token of a member's agent.
func tokenOf(ctx context.Context, m *fleet.Member) string {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(m.Cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	secret, err := client.CoreV1().Secrets("fleet-system").Get(ctx, "agent-credential", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return string(secret.Data["token"])
}
