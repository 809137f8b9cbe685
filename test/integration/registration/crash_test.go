// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"fmt"
	"math"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/enroll"
)

// stepsAtMost is more than what either side writes for one registration or leave: a
// crash beyond the last write does not happen, and ends the walk.
const stepsAtMost = 60

var _ = Describe("Whoever is killed at any write", Label("crash"), func() {
	// expectOneMember is the final state, whatever happened on the way.
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

	It("leads to the same member: the gateway", func(ctx SpecContext) {
		for step := 1; step <= stepsAtMost; step++ {
			By(fmt.Sprintf("killing the gateway at write %d", step))
			namespace := makeNamespace(ctx)
			name := registrationv1alpha1.ClusterName(namespace)
			killed := newCrash(step, namespace, name)
			first := startGateway(gatewayOptions{config: killed.config()})
			token := makeToken(ctx, namespace, time.Hour)
			a := startAgent(agentOptions{
				namespace: makeAgentNamespace(ctx), clientID: namespace,
				bootstrap: func(ctx context.Context) (*enroll.Bootstrap, error) { return tryValues(ctx, token) },
			})
			done := crashedOr(killed, func() bool { return hasJoined(ctx, name) })
			first.end()
			second := startGateway(gatewayOptions{})
			expectOneMember(ctx, namespace, a)
			a.end()
			second.end()
			if done {
				return
			}
		}
		Fail("the gateway writes more than this test expects")
	}, SpecTimeout(5*time.Minute))

	It("leads to the same member: the agent", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		// Agents do not disturb each other: as many as make a few waves are killed at once.
		const wave = 8
		type life struct {
			namespace, agentNamespace string
			killed                    *crash
			first, second             *agent
		}
		for from := 1; from <= stepsAtMost; from += wave {
			By(fmt.Sprintf("killing agents at the writes %d to %d", from, from+wave-1))
			var lives []*life
			for step := from; step < from+wave; step++ {
				l := &life{namespace: makeNamespace(ctx), agentNamespace: makeAgentNamespace(ctx), killed: newCrash(step)}
				values := registrationValues(ctx, l.namespace)
				_, err := memberClient.CoreV1().Secrets(l.agentNamespace).Create(ctx, bootstrapSecret(l.agentNamespace, values), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				l.first = startAgent(agentOptions{namespace: l.agentNamespace, clientID: l.namespace, wrap: l.killed.wrap})
				lives = append(lives, l)
			}
			done := false
			for _, l := range lives {
				done = crashedOr(l.killed, func() bool { return hasJoined(ctx, registrationv1alpha1.ClusterName(l.namespace)) }) || done
				l.first.end()
				l.second = startAgent(agentOptions{namespace: l.agentNamespace, clientID: l.namespace})
			}
			for _, l := range lives {
				expectOneMember(ctx, l.namespace, l.second)
				l.second.end()
			}
			if done {
				return
			}
		}
		Fail("the agent writes more than this test expects")
	}, SpecTimeout(5*time.Minute))

	It("leaves nothing behind on leaving: the gateway", func(ctx SpecContext) {
		var leaving []string
		done := false
		for step := 1; step <= stepsAtMost && !done; step++ {
			By(fmt.Sprintf("killing the gateway at write %d", step))
			namespace := makeNamespace(ctx)
			before := startGateway(gatewayOptions{})
			a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
			name := expectEnrolled(ctx, a)
			expectJoined(ctx, name)
			before.end()

			killed := newCrash(step, namespace, name)
			first := startGateway(gatewayOptions{config: killed.config()})
			mc := getMember(ctx, name)
			Expect(hubClient.Delete(ctx, &mc)).To(Succeed())
			done = crashedOr(killed, func() bool { return getMember(ctx, name).UID == "" })
			first.end()
			leaving = append(leaving, name)
		}
		Expect(done).To(BeTrue(), "the gateway writes more than this test expects")

		By("letting a gateway finish what the killed ones began")
		startGateway(gatewayOptions{})
		for _, name := range leaving {
			expectGone(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
			expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(name)}})
		}
	}, SpecTimeout(5*time.Minute))

	It("writes nothing when it starts again and all is settled: the gateway", func(ctx SpecContext) {
		namespace := makeNamespace(ctx)
		name := registrationv1alpha1.ClusterName(namespace)
		never := newCrash(math.MaxInt, namespace, name)
		first := startGateway(gatewayOptions{config: never.config()})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		Expect(expectEnrolled(ctx, a)).To(Equal(name))
		expectJoined(ctx, name)
		a.end()
		Eventually(func(g Gomega) {
			g.Consistently(never.writes.Load).Should(Equal(never.writes.Load()))
		}).Should(Succeed(), "the gateway does not come to rest")
		first.end()

		counted := newCrash(1, namespace, name)
		startGateway(gatewayOptions{config: counted.config()})
		Consistently(counted.dead).WithTimeout(3 * time.Second).ShouldNot(BeClosed())
	})
})

// crashedOr waits until the process crashed (false), or what it was to do is done (true).
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

// tryValues reads the values of the token as they are now: none while a gateway that
// was killed has not issued them.
func tryValues(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) (*enroll.Bootstrap, error) {
	var secret corev1.Secret
	if err := hubClient.Get(ctx, client.ObjectKeyFromObject(token), &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return enroll.ParseBootstrap(secret.Data[registrationv1alpha1.RegistrationValuesKey])
}
