// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/support/faults"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// patient is how often a user retries, each time a tenth of a second later than the last. In all it
// is less than five seconds.
const patient = 9

// The URL, CA or port of the hub changes under constant load. Two gateways restart one after the
// other, as in an upgrade.
var _ = Describe("A fleet whose hub moves under load", Ordered, Label("matrix"), func() {
	var (
		f      *fleet.Fleet
		object *corev1.ConfigMap
		// next is the hub's second address. Agents end up there.
		next *faults.Proxy
	)

	BeforeAll(func(ctx SpecContext) {
		f = start(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Replicas: 2})
		object = prepareAll(ctx, f)
		answers(ctx, f, object)
		eachHoldsAll(ctx, f)
		var err error
		next, err = faults.Start(clientrest.AnonymousClientConfig(f.Hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(next.Close)
	})

	// throughout sends requests during an action. Each must be answered within five seconds.
	throughout := func(ctx context.Context, what string, do func(l *load)) {
		GinkgoHelper()
		l := newLoad(f, object)
		l.retries = patient
		during(ctx, l, object, func() { do(l) })
		AddReportEntry("requests while "+what, l.String())
		Expect(l.wrong).To(BeEmpty())
		Expect(l.failures).To(BeEmpty())
		Expect(l.answered).To(BeNumerically(">", 100), "too few requests for a result")
	}
	// remakeEach restarts the gateways with new flags. Like minReadySeconds of the chart's Deployment,
	// it gives agents time to connect to a gateway before the next one stops.
	remakeEach := func(ctx context.Context, l *load) {
		GinkgoHelper()
		for replica := range f.Gateways {
			Expect(f.Remake(ctx, replica)).To(Succeed())
			answers(ctx, f, object)
			eachHoldsAll(ctx, f)
			goesOn(ctx, l)
		}
	}

	It("loses no request for five seconds when it moves to another URL with another CA", func(ctx SpecContext) {
		ca := filepath.Join(f.Dir, "next-ca.pem")
		Expect(os.WriteFile(ca, next.CA, 0o600)).To(Succeed())
		registrations := countRegistrations(ctx, f)
		throughout(ctx, "the hub moves", func(l *load) {
			f.GatewayArgs = []string{"--move-agents", "--hub-url=" + next.URL, "--hub-ca-file=" + ca}
			remakeEach(ctx, l)
			for _, m := range f.Members {
				Eventually(serverOf).WithContext(ctx).WithArguments(m).Should(Equal(next.URL))
			}
			goesOn(ctx, l)
			answers(ctx, f, object)
			goesOn(ctx, l)
		})
		_, asked := next.Refused()
		Expect(asked).To(BeNumerically(">", 10), "agents use this URL")
		Expect(countRegistrations(ctx, f)).To(Equal(registrations), "no agent registered again")
	})

	It("loses no request when the port for agents moves, and agents follow", func(ctx SpecContext) {
		throughout(ctx, "the port for agents moves", func(l *load) {
			Expect(f.MoveAgentsPort()).To(Succeed())
			remakeEach(ctx, l)
			for _, m := range f.Members {
				Eventually(tunnelPath).WithContext(ctx).WithArguments(m).Should(Equal("port"))
			}
			goesOn(ctx, l)
		})
	})
})

var _ = Describe("An agent whose hub moves behind a proxy that blocks upgrades", func() {
	It("keeps its tunnel at the old address until upgrades pass", func(ctx SpecContext) {
		f := start(ctx, fleet.Options{Members: []string{member}, Tunnel: fleet.TunnelNative})
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
		next, err := faults.Start(clientrest.AnonymousClientConfig(f.Hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(next.Close)
		next.Set(faults.Faults{NoUpgrades: true})
		ca := filepath.Join(GinkgoT().TempDir(), "next-ca.pem")
		Expect(os.WriteFile(ca, next.CA, 0o600)).To(Succeed())
		former, err := serverOf(ctx, f.Members[0])
		Expect(err).NotTo(HaveOccurred())
		followed := func(ctx context.Context) (string, error) {
			return f.Kubectl(ctx, f.HubKubeconfig(), "", "get", "membercluster", member, `--output=jsonpath={.status.conditions[?(@.type=="HubURLReachable")].message}`)
		}

		f.GatewayArgs = []string{"--move-agents", "--hub-url=" + next.URL, "--hub-ca-file=" + ca}
		Expect(f.Remake(ctx, 0)).To(Succeed())
		Eventually(followed).WithContext(ctx).Should(And(ContainSubstring("the agent stays with"), ContainSubstring("no tunnel can be opened there")))
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
		Expect(serverOf(ctx, f.Members[0])).To(Equal(former))

		next.Set(faults.Faults{})
		Eventually(followed).WithContext(ctx).WithTimeout(3 * time.Minute).Should(ContainSubstring("the agent uses " + next.URL))
		Eventually(f.AwaitTunnels).WithContext(ctx).Should(Succeed())
	})
})

// goesOn waits until more requests were answered.
func goesOn(ctx context.Context, l *load) {
	GinkgoHelper()
	before := l.soFar()
	Eventually(l.soFar).WithContext(ctx).Should(BeNumerically(">", before+100))
}

// serverOf returns the hub URL in use by a member's agent.
func serverOf(ctx context.Context, m *fleet.Member) (string, error) {
	client, err := kubernetes.NewForConfig(m.Cluster.Config())
	if err != nil {
		return "", err
	}
	secret, err := client.CoreV1().Secrets("fleet-system").Get(ctx, "agent-credential", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return string(secret.Data["server"]), nil
}

func countRegistrations(ctx context.Context, f *fleet.Fleet) string {
	GinkgoHelper()
	out, err := f.Kubectl(ctx, f.HubKubeconfig(), "", "get", "clusterregistrations", "--all-namespaces", "--output=jsonpath={.items[*].metadata.uid}")
	Expect(err).NotTo(HaveOccurred())
	return out
}
