// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/fleet"
)

var _ = Describe("A gateway that is scaled out", Label("matrix"), func() {
	It("moves tunnels to the new replicas and loses no request", func(ctx SpecContext) {
		f := start(ctx, fleet.Options{Members: []string{"member-1", "member-2"}, Replicas: 3, Later: 2})
		object := prepareAll(ctx, f)
		answers(ctx, f, object)
		sessions := func(ctx context.Context, replica int) (n float64, err error) {
			metrics, err := scrape(ctx, f.GatewayMetricsOf(replica))
			for _, m := range f.Members {
				n += metrics[`fleetgate_tunnel_sessions{member="`+m.Name+`"}`]
			}
			return n, err
		}
		l := newLoad(f, object)
		during(ctx, l, object, func() {
			for replica, gateway := range f.Gateways {
				if replica > 0 {
					Expect(gateway.Start(ctx)).To(Succeed())
				}
				Eventually(sessions).WithContext(ctx).WithArguments(replica).WithTimeout(5 * time.Minute).Should(BeNumerically(">=", 1))
				goesOn(ctx, l)
			}
		})
		AddReportEntry("requests during a scale-out", l.String())
		Expect(l.wrong).To(BeEmpty())
		Expect(l.failures).To(BeEmpty())
		through := newLoadAt(f, object, len(f.Gateways)-1)
		for _, url := range through.urls {
			Expect(through.try(url + "/" + object.Name)).To(Succeed())
		}
	})
})
