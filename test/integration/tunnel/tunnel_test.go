// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel_test tests agents' tunnels on a real hub with the gateway's port for agents: how
// they connect, what ends them, and how requests fare when gateways and agents stop.
package tunnel_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const member = "member-1"

func TestTunnel(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	EnforceDefaultTimeoutsWhenUsingContexts() // A spec that waits too long must not use up the time of other suites.
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "The tunnel of an agent", Label("integration", "tunnel"))
}

var _ = artifacts.Report()

// start runs a fleet for the specs of a container, with the port for agents unless options say
// otherwise.
func start(ctx context.Context, o fleet.Options) *fleet.Fleet {
	GinkgoHelper()
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	o.Tunnel = cmp.Or(o.Tunnel, os.Getenv("FLEETGATE_TUNNEL"), fleet.TunnelPort)
	o.Dir, o.BinDir, o.Verbosity = GinkgoT().TempDir(), filepath.Join(home, "bin"), 2
	started, err := fleet.Start(ctx, o)
	if started != nil {
		DeferCleanup(func(ctx context.Context) { Expect(started.Stop(ctx)).To(Succeed()) })
	}
	Expect(err).NotTo(HaveOccurred())
	return started
}

// tunnelPath returns the path in use that the agent reports: hub, port, konnectivity or nothing.
func tunnelPath(ctx context.Context, of *fleet.Member) (string, error) {
	metrics, err := scrape(ctx, of.AgentMetrics())
	if err != nil {
		return "", err
	}
	for _, path := range []string{"hub", "port", "konnectivity"} {
		if metrics[`fleetgate_agent_tunnel_connected{path="`+path+`"}`] == 1 {
			return path, nil
		}
	}
	return "", nil
}

// throughHub reaches the member as the fleet's user.
func throughHub(f *fleet.Fleet) kubernetes.Interface {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", f.MemberKubeconfig(member))
	Expect(err).NotTo(HaveOccurred())
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

var _ = Describe("An agent that can reach the gateway's own port", Ordered, func() { atPort(fleet.TunnelPort) })

var _ = Describe("An agent with data connections", Ordered, func() { atPort(fleet.TunnelData) })

// dataConnections returns how many data connections agents have opened to the gateway.
func dataConnections(ctx context.Context, f *fleet.Fleet) (float64, error) {
	metrics, err := scrape(ctx, f.GatewayMetrics())
	return metrics[`fleetgate_tunnel_data_connections_total{member="`+member+`",result="opened"}`], err
}

// atPort are the specs of both ways to carry bytes to the gateway's own port.
func atPort(way string) {
	var running *fleet.Fleet
	tunnelPath := func(ctx context.Context) (string, error) { return tunnelPath(ctx, running.Members[0]) }

	BeforeAll(func(ctx SpecContext) { running = start(ctx, fleet.Options{Members: []string{member}, Tunnel: way}) })

	It("moves its tunnel there, and is reached through it", func(ctx SpecContext) {
		Eventually(tunnelPath).WithContext(ctx).Should(Equal("port"))
		Eventually(func(ctx context.Context) error {
			_, err := throughHub(running).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			if apierrors.IsForbidden(err) {
				return nil // The member rejected a user that it does not know, so it answered.
			}
			return err
		}).WithContext(ctx).Should(Succeed())
		Expect(dataConnections(ctx, running)).To(BeNumerically(map[bool]string{true: ">", false: "=="}[way == fleet.TunnelData], 0))
	})

	It("reconnects after the gateway was killed", func(ctx SpecContext) {
		Expect(running.Gateway.Kill()).To(Succeed())
		Eventually(tunnelPath).WithContext(ctx).Should(BeEmpty())
		Expect(running.Gateway.Start(ctx)).To(Succeed())
		Eventually(tunnelPath).WithContext(ctx).Should(Equal("port"))
	})

	It("loses its tunnel within seconds when its credential is revoked", func(ctx SpecContext) {
		hub, err := kubernetes.NewForConfig(running.Hub.Config())
		Expect(err).NotTo(HaveOccurred())
		Expect(hub.CoreV1().Secrets(clusterv1beta1.MemberNamespace(member)).
			Delete(ctx, clusterv1beta1.AgentCredentialSecret, metav1.DeleteOptions{})).To(Succeed())
		Eventually(tunnelPath).WithContext(ctx).WithTimeout(15*time.Second).ShouldNot(Equal("port"), "the tunnel was not ended")
	})
}
