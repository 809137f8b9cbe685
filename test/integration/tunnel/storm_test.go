// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// storming is how long a storm lasts.
	storming = time.Minute
	// decided is long enough for a gateway to answer or reject a request while another one is frozen,
	// which it should do within 3 s, on loaded cores too. The report has the longest time. A request that
	// waits for the frozen one takes half a minute.
	decided = 10 * time.Second
)

// Three gateways reach each other over links that can be cut.
var _ = Describe("Three gateways in a storm", Ordered, Label("matrix"), func() {
	const replicas = 3
	var (
		f      *fleet.Fleet
		object *corev1.ConfigMap
		// links are from a gateway, to another one.
		links [replicas][replicas]*env.Link
	)

	BeforeAll(func(ctx SpecContext) {
		f = start(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Replicas: replicas, PeerAddress: func(from, to int, address string) (string, error) {
			link, err := env.NewLink(address)
			if err != nil {
				return "", err
			}
			DeferCleanup(link.Close)
			links[from][to] = link
			return link.Addr(), nil
		}})
		object = prepareAll(ctx, f)
		answers(ctx, f, object)
	})

	// eachAnswers waits until every replica answers for every member.
	eachAnswers := func(ctx context.Context, among ...int) {
		GinkgoHelper()
		for _, replica := range among {
			Eventually(func() error {
				l := newLoadAt(f, object, replica)
				defer l.client.CloseIdleConnections()
				l.limit = decided
				for _, url := range l.urls {
					if err := l.try(url + "/" + object.Name); err != nil {
						return err
					}
				}
				return nil
			}).WithContext(ctx).WithTimeout(2*time.Minute).Should(Succeed(), "through replica %d", replica)
		}
	}
	// partition separates a gateway from all others, or ends that.
	partition := func(replica int, do func(*env.Link)) {
		for other := range replicas {
			if other != replica {
				do(links[replica][other])
				do(links[other][replica])
			}
		}
	}

	It("answer or reject each request while one of them is frozen", func(ctx SpecContext) {
		for frozen := range replicas {
			others := []int{(frozen + 1) % replicas, (frozen + 2) % replicas}
			eachAnswers(ctx, 0, 1, 2)
			first, second := newLoadAt(f, object, others[0]), newLoadAt(f, object, others[1])
			first.limit, second.limit = decided, decided
			during(ctx, first, object, func() {
				during(ctx, second, object, func() {
					goesOn(ctx, first)
					goesOn(ctx, second)
					Expect(f.Gateways[frozen].Freeze()).To(Succeed())
					DeferCleanup(f.Gateways[frozen].Thaw)
					goesOn(ctx, first)
					goesOn(ctx, second)
					eachAnswers(ctx, others...)
				})
			})
			Expect(f.Gateways[frozen].Thaw()).To(Succeed())
			AddReportEntry(fmt.Sprintf("requests while replica %d is frozen", frozen), first.String()+second.String())
			Expect(first.wrong).To(BeEmpty())
			Expect(second.wrong).To(BeEmpty())
		}
	})

	It("answer or reject each request while they are killed, frozen and partitioned, and recover", func(ctx SpecContext) {
		random := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		blow := func() {
			GinkgoHelper()
			replica := random.IntN(replicas)
			gateway := f.Gateways[replica]
			begin, end := gateway.Freeze, gateway.Thaw
			switch random.IntN(4) {
			case 0:
				begin, end = gateway.Kill, func() error { return gateway.Start(ctx) }
			case 1:
				begin, end = func() error { partition(replica, (*env.Link).Cut); return nil }, func() error { partition(replica, (*env.Link).Mend); return nil }
			case 2:
				begin, end = func() error { partition(replica, (*env.Link).Stall); return nil }, func() error { partition(replica, (*env.Link).Mend); return nil }
			}
			Expect(begin()).To(Succeed())
			for range 1 + random.IntN(5) {
				pause(ctx, random)
			}
			Expect(end()).To(Succeed())
			pause(ctx, random)
		}
		loads := []*load{newLoad(f, object)}
		for replica := range replicas {
			loads = append(loads, newLoadAt(f, object, replica))
		}
		do := func() {
			for began := time.Now(); time.Since(began) < storming; {
				blow()
			}
		}
		for _, l := range loads {
			inner := do
			do = func() { during(ctx, l, object, inner) }
		}
		do()
		for _, l := range loads {
			AddReportEntry("requests in a storm", l.String())
			Expect(l.wrong).To(BeEmpty())
			Expect(l.answered).To(BeNumerically(">", 100), "too few requests for a result")
		}
		eachAnswers(ctx, 0, 1, 2)
		answers(ctx, f, object)
	})
})
