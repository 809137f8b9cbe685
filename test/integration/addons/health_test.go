// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/pkg/addon/agent/health"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// The hub is its own member here: only the namespaces differ.
var _ = Describe("The health of an add-on is reported", func() {
	report := func(namespace string) *expect.Running {
		GinkgoHelper()
		skip := true
		return expect.Started(func(context.Context) (func(context.Context) error, error) {
			mgr, err := ctrl.NewManager(build.Unlimited(hub.Config()), ctrl.Options{
				Scheme: kinds(), Metrics: server.Options{BindAddress: "0"},
				Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}}, Controller: config.Controller{SkipNameValidation: &skip},
			})
			if err != nil {
				return nil, err
			}
			return mgr.Start, (&health.Reconciler{Hub: mgr.GetClient(), Member: hubClient, Clock: clock.RealClock{}, Interval: 100 * time.Millisecond}).SetupWithManager(mgr)
		})
	}

	It("by its Lease, and again after the hub has overwritten it", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		agent := report(b.name("a"))
		DeferCleanup(agent.Stop)
		expect.Created(ctx, hubClient, build.Namespace(b.name("agents")))
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In(b.name("a"), b.name("addon"))}
		addOn.Spec.InstallNamespace = b.name("agents")
		expect.Created(ctx, hubClient, addOn)
		available := func(said string) {
			GinkgoHelper()
			Eventually(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Available", said))
		}
		available("Unknown/ManagedClusterAddOnLeaseNotFound")

		renewed := metav1.NewMicroTime(time.Now().Add(-time.Hour))
		lease := &coordinationv1.Lease{ObjectMeta: build.In(b.name("agents"), b.name("addon")), Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
		expect.Created(ctx, hubClient, lease)
		available("False/ManagedClusterAddOnLeaseUpdateStopped")
		renewed = metav1.NewMicroTime(time.Now())
		lease.Spec.RenewTime = &renewed
		Expect(hubClient.Update(ctx, lease)).To(Succeed())
		available("True/ManagedClusterAddOnLeaseUpdated")

		By("overwriting it, as for a cluster without a heartbeat")
		Eventually(func() error {
			live, err := b.of(ctx, "a")
			if err != nil {
				return err
			}
			meta.SetStatusCondition(&live.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionUnknown, Reason: "ManagedClusterLeaseUpdateStopped"})
			return hubClient.Status().Update(ctx, live)
		}).Should(Succeed())
		available("True/ManagedClusterAddOnLeaseUpdated")

		By("leaving it to the manager")
		Eventually(func() error {
			live, err := b.of(ctx, "a")
			if err != nil {
				return err
			}
			live.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckCustomized
			meta.SetStatusCondition(&live.Status.Conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: "Managed"})
			return hubClient.Status().Update(ctx, live)
		}).Should(Succeed())
		Consistently(b.conditions).WithArguments(ctx, "a").Should(expect.HaveCondition("Available", "False/Managed"))
	})
})
