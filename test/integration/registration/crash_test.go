// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
)

// stepsAtMost is more than the number of writes of either side for one registration or removal. A crash
// beyond the last write does not happen, and ends the walk.
const stepsAtMost = 60

var _ = Describe("A process that is killed at any write", Label("crash"), func() {
	// expectOneMember checks the final state.
	expectOneMember := func(ctx SpecContext, namespace string, a *agent) {
		GinkgoHelper()
		name := expectEnrolled(ctx, a)
		Expect(name).To(Equal(registrationv1alpha1.ClusterName(namespace)))
		expectJoined(ctx, name)
		var clusters registrationv1alpha1.ClusterList
		Expect(hubClient.List(ctx, &clusters, client.InNamespace(namespace))).To(Succeed())
		Expect(clusters.Items).To(HaveLen(1))
		var requests registrationv1alpha1.ClusterRegistrationList
		Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
		Expect(requests.Items).To(HaveLen(1))
		var members clusterv1beta1.MemberClusterList
		Expect(hubClient.List(ctx, &members)).To(Succeed())
		var ours []string
		for _, mc := range members.Items {
			if mc.Annotations[registrationv1alpha1.AnnotationClusterNamespace] == namespace {
				ours = append(ours, mc.Name)
			}
		}
		Expect(ours).To(ConsistOf(name))
	}

	// The runs do not disturb each other: several of them are killed at the same time, each at another
	// write. Every third write covers most failures; the others run in the matrix.
	const wave = 12
	everyThird := []TableEntry{
		Entry("at every third write", SpecTimeout(5*time.Minute), []int{1}),
		Entry("at the other writes", Label("matrix"), SpecTimeout(5*time.Minute), []int{2, 3}),
	}
	const stride = 3
	type life struct {
		namespace, agentNamespace, name string
		killed                          *crash
		token                           *registrationv1alpha1.ClusterRegistrationToken
		agent                           *agent
	}
	makeWave := func(ctx SpecContext, from, step int) []*life {
		GinkgoHelper()
		By(fmt.Sprintf("killing at %d writes from number %d in steps of %d", wave, from, step))
		lives := make([]*life, wave)
		for i := range lives {
			namespace := makeNamespace(ctx)
			name := registrationv1alpha1.ClusterName(namespace)
			lives[i] = &life{namespace: namespace, agentNamespace: makeAgentNamespace(ctx), name: name, killed: newCrash(from+step*i, namespace, name)}
		}
		return lives
	}
	endAgents := func(lives []*life) {
		var ending sync.WaitGroup
		for _, l := range lives {
			ending.Go(l.agent.end)
		}
		ending.Wait()
	}
	// walk kills at all writes of these numbers and their successors, until one does not happen.
	walk := func(firsts []int, step int, killAt func(from int) (done bool)) {
		GinkgoHelper()
		for _, from := range firsts {
			done := false
			for ; from <= stepsAtMost && !done; from += wave * step {
				done = killAt(from)
			}
			Expect(done).To(BeTrue(), "there are more writes than this test expects")
		}
	}
	crashesOf := func(lives []*life) []*crash {
		var all []*crash
		for _, l := range lives {
			all = append(all, l.killed)
		}
		return all
	}

	DescribeTable("leads to the same member: the gateway", func(ctx SpecContext, firsts []int) {
		walk(firsts, stride, func(from int) bool {
			done, lives := false, makeWave(ctx, from, stride)
			first := startGateway(gatewayOptions{config: configOf(crashesOf(lives)...)})
			for _, l := range lives {
				l.token = makeToken(ctx, l.namespace, time.Hour)
				l.agent = startAgent(agentOptions{
					namespace: l.agentNamespace, clientID: l.namespace,
					bootstrap: func(ctx context.Context) (*enroll.Bootstrap, error) { return tryValues(ctx, l.token) },
				})
			}
			for _, l := range lives {
				done = crashedOr(l.killed, func() bool { return hasJoined(ctx, l.name) }) || done
			}
			first.end()
			second := startGateway(gatewayOptions{})
			for _, l := range lives {
				expectOneMember(ctx, l.namespace, l.agent)
			}
			endAgents(lives)
			second.end()
			return done
		})
	}, everyThird)

	It("leads to the same member: the agent", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		walk([]int{1}, 1, func(from int) bool {
			done, lives := false, makeWave(ctx, from, 1)
			for _, l := range lives {
				l.killed.about = nil
				values := registrationValues(ctx, l.namespace)
				_, err := memberClient.CoreV1().Secrets(l.agentNamespace).Create(ctx, bootstrapSecret(l.agentNamespace, values), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				l.agent = startAgent(agentOptions{namespace: l.agentNamespace, clientID: l.namespace, wrap: l.killed.wrap})
			}
			for _, l := range lives {
				done = crashedOr(l.killed, func() bool { return hasJoined(ctx, l.name) }) || done
			}
			endAgents(lives)
			for _, l := range lives {
				l.agent = startAgent(agentOptions{namespace: l.agentNamespace, clientID: l.namespace})
			}
			for _, l := range lives {
				expectOneMember(ctx, l.namespace, l.agent)
			}
			endAgents(lives)
			return done
		})
	}, SpecTimeout(5*time.Minute))

	DescribeTable("leaves nothing behind on leaving: the gateway", func(ctx SpecContext, firsts []int) {
		walk(firsts, stride, func(from int) bool {
			done, lives := false, makeWave(ctx, from, stride)
			before := startGateway(gatewayOptions{})
			for _, l := range lives {
				l.token = makeToken(ctx, l.namespace, time.Hour)
			}
			for _, l := range lives {
				l.agent = startAgent(agentOptions{namespace: l.agentNamespace, clientID: l.namespace, bootstrap: enroll.Given(valuesOf(ctx, l.token))})
			}
			for _, l := range lives {
				Expect(expectEnrolled(ctx, l.agent)).To(Equal(l.name))
				expectJoined(ctx, l.name)
			}
			before.end()

			first := startGateway(gatewayOptions{config: configOf(crashesOf(lives)...)})
			for _, l := range lives {
				mc := getMember(ctx, l.name)
				Expect(hubClient.Delete(ctx, &mc)).To(Succeed())
			}
			for _, l := range lives {
				done = crashedOr(l.killed, func() bool { return getMember(ctx, l.name).UID == "" }) || done
			}
			first.end()

			By("starting a gateway that completes the work of the killed one")
			last := startGateway(gatewayOptions{})
			for _, l := range lives {
				expectGone(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: l.name}})
				expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(l.name)}})
			}
			endAgents(lives)
			last.end()
			return done
		})
	}, everyThird)

	It("writes nothing after a restart in a settled state: the gateway", func(ctx SpecContext) {
		namespace := makeNamespace(ctx)
		name := registrationv1alpha1.ClusterName(namespace)
		never := newCrash(math.MaxInt, namespace, name)
		first := startGateway(gatewayOptions{config: configOf(never)})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		Expect(expectEnrolled(ctx, a)).To(Equal(name))
		expectJoined(ctx, name)
		a.end()
		Eventually(func(g Gomega) {
			g.Consistently(never.writes.Load).Should(Equal(never.writes.Load()))
		}).Should(Succeed(), "the gateway does not settle")
		first.end()

		counted := newCrash(1, namespace, name)
		startGateway(gatewayOptions{config: configOf(counted)})
		Consistently(counted.dead).WithTimeout(3 * time.Second).ShouldNot(BeClosed())
	})
})

// crashedOr waits until the process crashed (false), or its work is complete (true).
func crashedOr(killed *crash, isDone func() bool) bool {
	GinkgoHelper()
	done := false
	Eventually(func() bool {
		select {
		case <-killed.dead:
			return true
		default:
			done = isDone()
			return done
		}
	}).Should(BeTrue())
	return done
}

func hasJoined(ctx context.Context, name string) bool {
	return meta.IsStatusConditionTrue(getMember(ctx, name).Status.Conditions, clusterv1beta1.ConditionJoined)
}

// tryValues reads the current values of the token: none while a killed gateway has not issued them.
func tryValues(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) (*enroll.Bootstrap, error) {
	var secret corev1.Secret
	if err := hubClient.Get(ctx, client.ObjectKeyFromObject(token), &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return enroll.ParseBootstrap(secret.Data[registrationv1alpha1.RegistrationValuesKey])
}
