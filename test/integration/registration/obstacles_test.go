// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/test/support/env"
)

var _ = Describe("Registering despite", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) { namespace = makeNamespace(ctx) })

	It("a hub that restarts meanwhile", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		address, err := url.Parse(hub.URL)
		Expect(err).NotTo(HaveOccurred())
		link, err := env.NewLink(address.Host)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(link.Close)
		values := registrationValues(ctx, namespace)
		values.APIServerURL = "https://" + link.Addr()
		var once sync.Once
		a := startAgent(agentOptions{
			namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(values),
			wrap: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(request *http.Request) (*http.Response, error) {
					if request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/clusterregistrations") {
						defer once.Do(link.Cut)
					}
					return next.RoundTrip(request)
				})
			},
		})
		expectProblem(a, enroll.HubUnreachable, link.Addr(), "does not answer")
		link.Mend()
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		var requests registrationv1alpha1.ClusterRegistrationList
		Expect(hubClient.List(ctx, &requests, client.InNamespace(namespace))).To(Succeed())
		Expect(requests.Items).To(HaveLen(1), "it found its own request")
	})

	DescribeTable("a wrong clock", func(ctx SpecContext, ahead time.Duration) {
		startGateway(gatewayOptions{})
		agentNamespace := makeAgentNamespace(ctx)
		wrong := later{clock.RealClock{}, ahead}
		a := startAgent(agentOptions{
			namespace: agentNamespace, clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace)), clock: wrong,
		})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		a.end()

		By("restarting with its stored state, and without a token")
		again := startAgent(agentOptions{namespace: agentNamespace, clientID: namespace, clock: wrong})
		Expect(expectEnrolled(ctx, again)).To(Equal(name))
	},
		Entry("by an hour, and fast", time.Hour),
		Entry("by an hour, and slow", -time.Hour),
	)
})
