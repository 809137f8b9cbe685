// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel_test follows one agent's tunnel on a real hub, with the gateway's
// own port for agents: how it gets there, and what ends it.
package tunnel_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/env"
	"fleetgate.io/fleetgate/test/fleet"
)

const member = "member-1"

var running *fleet.Fleet

func TestTunnel(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "The tunnel of an agent", Label("integration", "tunnel"))
}

var _ = BeforeSuite(func(ctx SpecContext) {
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	running, err = fleet.Start(ctx, fleet.Options{
		Dir: GinkgoT().TempDir(), Members: []string{member}, BinDir: filepath.Join(home, "bin"), Tunnel: fleet.TunnelPort, Verbosity: 2,
	})
	if running != nil {
		DeferCleanup(func(ctx context.Context) { Expect(running.Stop(ctx)).To(Succeed()) })
	}
	Expect(err).NotTo(HaveOccurred())
})

// way is how the agent says that its tunnel goes: hub, port or nothing.
func way(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, running.Members[0].AgentMetrics(), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	for _, way := range []string{"hub", "port"} {
		if strings.Contains(string(text), `fleetgate_agent_tunnel_connected{way="`+way+`"} 1`) {
			return way, nil
		}
	}
	return "", nil
}

// throughHub reaches the member as the fleet's user does.
func throughHub() kubernetes.Interface {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", running.MemberKubeconfig(member))
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

var _ = Describe("An agent that can reach the gateway's own port", Ordered, func() {
	It("moves its tunnel there, and is reached through it", func(ctx SpecContext) {
		Eventually(way).WithContext(ctx).Should(Equal("port"))
		Eventually(func(ctx context.Context) error {
			_, err := throughHub().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			if apierrors.IsForbidden(err) {
				return nil // the member has answered: it does not know the user yet
			}
			return err
		}).WithContext(ctx).Should(Succeed())
	})

	It("comes back after the gateway was killed", func(ctx SpecContext) {
		Expect(running.Gateway.Kill()).To(Succeed())
		Eventually(way).WithContext(ctx).Should(BeEmpty())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
		Eventually(way).WithContext(ctx).Should(Equal("port"))
	})

	It("loses its tunnel within seconds when its credential is revoked", func(ctx SpecContext) {
		hub, err := kubernetes.NewForConfig(running.Hub.Config())
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.CoreV1().Secrets(clusterv1beta1.MemberNamespace(member)).
			Delete(ctx, clusterv1beta1.AgentCredentialSecret, metav1.DeleteOptions{})).To(Succeed())
		Eventually(way).WithContext(ctx).WithTimeout(15*time.Second).ShouldNot(Equal("port"), "the tunnel was not ended")
	})
})
