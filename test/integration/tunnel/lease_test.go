// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/fleet"
)

var _ = Describe("A gateway that loses its Lease", func() {
	It("keeps serving requests, tunnels and webhooks, and restarts its controllers when it is the leader again", func(ctx SpecContext) {
		f := start(ctx, fleet.Options{Members: []string{member}})
		object := prepareAll(ctx, f)
		answers(ctx, f, object)
		hub, err := kubernetes.NewForConfig(f.Hub.Config())
		Expect(err).NotTo(HaveOccurred())
		scheme := runtime.NewScheme()
		Expect(placementv1beta1.AddToScheme(scheme)).To(Succeed())
		Expect(clusterv1beta1.AddToScheme(scheme)).To(Succeed())
		kinds, err := client.New(f.Hub.Config(), client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(leaderOf(ctx, f)).To(BeZero())
		process := f.Gateway.PID()
		joins := func(name string) {
			GinkgoHelper()
			Expect(kinds.Create(ctx, &clusterv1beta1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
			})).To(Succeed())
		}
		made := func(name string) error {
			_, err := hub.CoreV1().Namespaces().Get(ctx, clusterv1beta1.MemberNamespace(name), metav1.GetOptions{})
			return err
		}
		// Only the webhook rejects a placement of an unknown kind.
		refusal := ContainSubstring("failed to get GVR of the selector")
		reviewed := func() error {
			return kinds.Create(ctx, &placementv1beta1.ClusterResourcePlacement{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "wrong-"},
				Spec: placementv1beta1.PlacementSpec{
					ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Nothing", Name: "shop"}},
				},
			})
		}
		Eventually(reviewed).WithContext(ctx).Should(MatchError(refusal))

		l := newLoad(f, object)
		during(ctx, l, object, func() {
			for _, name := range []string{"after-one", "after-two"} {
				giveBack := takeLease(ctx, f, hub)
				Eventually(scrape).WithContext(ctx).WithArguments(f.GatewayMetricsOf(0)).Should(HaveKeyWithValue(leading, 0.0))
				joins(name)
				before := l.soFar()
				Eventually(l.soFar).WithContext(ctx).Should(BeNumerically(">", before+200))
				// Without a leader, leader-elected controllers stop; servers in every replica
				// continue.
				Expect(made(name)).To(Satisfy(apierrors.IsNotFound))
				Expect(reviewed()).To(MatchError(refusal))
				giveBack()
				Eventually(scrape).WithContext(ctx).WithArguments(f.GatewayMetricsOf(0)).Should(HaveKeyWithValue(leading, 1.0))
				Eventually(made).WithContext(ctx).WithArguments(name).Should(Succeed())
			}
		})
		Expect(l.wrong).To(BeEmpty())
		Expect(l.failures).To(BeEmpty())
		Expect(f.Gateway.PID()).To(Equal(process), "the gateway stopped")
		Expect(tunnelPath(ctx, f.Members[0])).To(Equal("port"))
	})
})

// takeLease holds the gateways' Lease under another identity until it is released.
func takeLease(ctx context.Context, f *fleet.Fleet, hub kubernetes.Interface) (giveBack func()) {
	GinkgoHelper()
	leases := hub.CoordinationV1().Leases(corev1.NamespaceAll)
	all, err := leases.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=fleetgate-gateway"})
	Expect(err).NotTo(HaveOccurred())
	Expect(all.Items).To(HaveLen(1))
	lease := all.Items[0]
	hold := func(by string) func(context.Context) error {
		return func(ctx context.Context) error {
			leases := hub.CoordinationV1().Leases(lease.Namespace)
			now, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Spec.HolderIdentity, now.Spec.RenewTime = ptr.To(by), ptr.To(metav1.NowMicro())
			_, err = leases.Update(ctx, now, metav1.UpdateOptions{})
			return err
		}
	}
	Eventually(hold("somebody-else")).WithContext(ctx).Should(Succeed())
	holding, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for rest(holding, time.Second); holding.Err() == nil; rest(holding, time.Second) {
			_ = hold("somebody-else")(holding) // The gateway may write in between.
		}
	}()
	return func() {
		stop()
		<-ended
		Eventually(hold("")).WithContext(ctx).Should(Succeed())
	}
}
