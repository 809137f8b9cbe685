// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// users is the number of parallel requests.
	users = 8
	// payload is large enough that a request is in flight when a process is killed.
	payload = 256 << 10
	// killing is how long the spec kills processes of each side.
	killing = 30 * time.Second
)

// leading is the metric of the replica that runs the controllers.
const leading = `leader_election_master_status{name="fleetgate-gateway"}`

// Two gateways run behind a load balancer, as behind a Service, with two members.
var _ = Describe("Two gateways", Ordered, Label("matrix"), func() {
	var (
		f      *fleet.Fleet
		object *corev1.ConfigMap
	)

	BeforeAll(func(ctx SpecContext) {
		f = start(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Replicas: 2})
		object = prepareAll(ctx, f)
	})

	// losesNone applies an action to each gateway under load and expects every request to be
	// answered.
	losesNone := func(ctx context.Context, done string, do func(*env.Process)) {
		GinkgoHelper()
		answers(ctx, f, object)
		eachHoldsAll(ctx, f)
		l := newLoad(f, object)
		l.retries = 10
		during(ctx, l, object, func() {
			for _, gateway := range f.Gateways {
				before := l.soFar()
				do(gateway)
				Eventually(l.soFar).WithContext(ctx).Should(BeNumerically(">", before+200))
				Expect(gateway.Start(ctx)).To(Succeed())
				eachHoldsAll(ctx, f)
			}
		})
		AddReportEntry("requests while each gateway is "+done, l.String())
		Expect(l.wrong).To(BeEmpty())
		Expect(l.failures).To(BeEmpty())
	}

	It("lose no request that can be retried while each is restarted", func(ctx SpecContext) {
		losesNone(ctx, "restarted", func(p *env.Process) { Expect(p.Stop(ctx)).To(Succeed()) })
	})

	It("lose no request that can be retried when the replica with the tunnel is killed", func(ctx SpecContext) {
		losesNone(ctx, "killed", func(p *env.Process) { Expect(p.Kill()).To(Succeed()) })
	})

	It("elect another leader when the leader is stopped or killed", func(ctx SpecContext) {
		for _, end := range []struct {
			how string
			do  func(*env.Process) error
		}{
			{"stopped", func(p *env.Process) error { return p.Stop(ctx) }},
			{"killed", func(p *env.Process) error { return p.Kill() }},
		} {
			leader := leaderOf(ctx, f)
			began := time.Now()
			Expect(end.do(f.Gateways[leader])).To(Succeed())
			Eventually(scrape).WithContext(ctx).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).
				WithArguments(f.GatewayMetricsOf(1 - leader)).Should(HaveKeyWithValue(leading, 1.0))
			AddReportEntry("until another gateway leads when the leader is "+end.how, time.Since(began).Round(100*time.Millisecond).String())
			Expect(f.Gateways[leader].Start(ctx)).To(Succeed())
			eachHoldsAll(ctx, f)
		}
	})

	It("answer or reject every request while gateways and agents are killed, and leak nothing", func(ctx SpecContext) {
		for side := range 2 {
			victims := []*env.Process{f.Gateways[1-side], f.Members[1-side].Agent}
			survivors := map[string]string{"gateway": f.GatewayMetricsOf(side), "agent": f.Members[side].AgentMetrics()}

			// After a kill the other gateway becomes the leader, which uses more memory. Measure it
			// only once it is the leader.
			Expect(victims[0].Kill()).To(Succeed())
			Eventually(scrape).WithContext(ctx).WithArguments(survivors["gateway"]).Should(HaveKeyWithValue(leading, 1.0))
			Expect(victims[0].Start(ctx)).To(Succeed())
			answers(ctx, f, object)
			eachHoldsAll(ctx, f)
			warm := newLoad(f, object)
			during(ctx, warm, object, func() {
				Eventually(warm.soFar).WithContext(ctx).Should(BeNumerically(">", 200))
			})
			before := map[string]holdings{}
			for name, url := range survivors {
				var err error
				before[name], err = held(ctx, url)
				Expect(err).NotTo(HaveOccurred())
			}

			l := newLoad(f, object)
			var kills atomic.Int32
			during(ctx, l, object, func() {
				var all sync.WaitGroup
				defer all.Wait()
				for i, victim := range victims {
					random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), uint64(i)))
					all.Go(func() {
						defer GinkgoRecover()
						for began := time.Now(); time.Since(began) < killing; kills.Add(1) {
							Expect(victim.Kill()).To(Succeed())
							pause(ctx, random)
							Expect(victim.Start(ctx)).To(Succeed())
							pause(ctx, random)
						}
					})
				}
			})
			Expect(l.wrong).To(BeEmpty())
			Expect(l.answered).To(BeNumerically(">", 100), "too few requests for a result")

			answers(ctx, f, object)
			eachHoldsAll(ctx, f)
			for name, url := range survivors {
				Eventually(func(g Gomega) {
					after, err := held(ctx, url)
					g.Expect(err).NotTo(HaveOccurred())
					GinkgoWriter.Println(kills.Load(), "kills;", name, "held", before[name], "and holds", after)
					g.Expect(after.goroutines).To(BeNumerically("<=", before[name].goroutines+10), "goroutines")
					g.Expect(after.descriptors).To(BeNumerically("<=", before[name].descriptors+5), "descriptors")
					g.Expect(after.heapMiB).To(BeNumerically("<=", before[name].heapMiB+64), "MiB of heap")
				}).WithContext(ctx).WithTimeout(4*time.Minute).WithPolling(2*time.Second).Should(Succeed(), name)
			}
		}
	})
})

// eachHoldsAll waits until every replica holds tunnels of every member.
func eachHoldsAll(ctx context.Context, f *fleet.Fleet) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for replica := range f.Gateways {
			metrics, err := scrape(ctx, f.GatewayMetricsOf(replica))
			g.Expect(err).NotTo(HaveOccurred())
			for _, m := range f.Members {
				g.Expect(metrics).To(HaveKeyWithValue(`fleetgate_tunnel_sessions{member="`+m.Name+`"}`, BeNumerically(">=", 1)))
			}
		}
	}).WithContext(ctx).WithTimeout(3 * time.Minute).Should(Succeed())
}

// leaderOf waits until one of two gateways is the leader.
func leaderOf(ctx context.Context, f *fleet.Fleet) int {
	GinkgoHelper()
	leader := -1
	Eventually(func(g Gomega) {
		leader = -1
		for replica := range f.Gateways {
			metrics, err := scrape(ctx, f.GatewayMetricsOf(replica))
			g.Expect(err).NotTo(HaveOccurred())
			if metrics[leading] == 1 {
				leader = replica
			}
		}
		g.Expect(leader).NotTo(Equal(-1), "no leader")
	}).WithContext(ctx).Should(Succeed())
	return leader
}

// With Konnectivity an agent may be connected to one of two gateways only. The other gateway relays
// requests to it.
var _ = Describe("Two gateways with agents that use Konnectivity", Label("matrix"), func() {
	It("lose no request that can be retried while each is restarted", func(ctx SpecContext) {
		f := start(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Replicas: 2, Tunnel: fleet.TunnelKonnectivity})
		object := prepareAll(ctx, f)
		answers(ctx, f, object)
		l := newLoad(f, object)
		l.retries = 10
		during(ctx, l, object, func() {
			for _, gateway := range f.Gateways {
				Expect(gateway.Restart(ctx)).To(Succeed())
				answers(ctx, f, object)
			}
		})
		Expect(l.wrong).To(BeEmpty())
		Expect(l.failures).To(BeEmpty())
		Expect(l.answered).To(BeNumerically(">", 100), "too few requests for a result")
	})
})

// during runs a load during an action.
func during(ctx context.Context, l *load, object *corev1.ConfigMap, do func()) {
	GinkgoHelper()
	loading, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); l.run(loading, object.Name, users) }()
	defer func() {
		stop()
		<-ended
		GinkgoWriter.Println(l)
	}()
	do()
}

// answers waits until every member answers several times in a row, because the gateways take turns.
func answers(ctx context.Context, f *fleet.Fleet, object *corev1.ConfigMap) {
	GinkgoHelper()
	const inARow = 4
	Eventually(func() error {
		l := newLoad(f, object)
		for range inARow {
			for _, url := range l.urls {
				if err := l.try(url + "/" + object.Name); err != nil {
					return err
				}
			}
			l.client.CloseIdleConnections()
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
}

// prepareAll creates the object under load on every member.
func prepareAll(ctx context.Context, f *fleet.Fleet) *corev1.ConfigMap {
	GinkgoHelper()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "read"},
		Data:       map[string]string{"payload": strings.Repeat("0123456789abcdef", payload/16)},
	}
	for _, m := range f.Members {
		prepare(ctx, m.Cluster, object)
	}
	return object
}

// pause returns a random duration from the run's seed, so that kills come at arbitrary times.
func pause(ctx context.Context, random *rand.Rand) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(random.Int64N(int64(time.Second)))):
	}
}

// prepare creates an object on a member and lets the fleet's user read it.
func prepare(ctx context.Context, member *env.Cluster, object *corev1.ConfigMap) {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(member.Config())
	Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "fleetgate:admins"}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
