// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// mirroring asks for the status of resources.
func mirroring(destination placementv1beta1.ReportBackDestination) func(*placementv1beta1.PlacementSpec) {
	return func(spec *placementv1beta1.PlacementSpec) {
		picking(1, nil)(spec)
		spec.Strategy.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror, Destination: destination}
	}
}

// door makes an Ingress in a shop: a kind of which nobody on this hub writes the status.
func door(ctx context.Context, namespace string) {
	GinkgoHelper()
	path := networkingv1.PathTypePrefix
	create(ctx, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "door"}, Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}})
}

// addressOf is what the Ingress of the hub says.
func addressOf(ctx context.Context, namespace string) func() (string, error) {
	return func() (string, error) {
		i := &networkingv1.Ingress{}
		if err := hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "door"}, i); err != nil || len(i.Status.LoadBalancer.Ingress) == 0 {
			return "", err
		}
		return i.Status.LoadBalancer.Ingress[0].IP, nil
	}
}

// tell has a member say which address the Ingresses of namespaces have.
func tell(ctx context.Context, member, placement, address string, namespaces ...string) {
	GinkgoHelper()
	Eventually(func() error {
		work, err := workOf(ctx, member, placement)
		if err != nil {
			return err
		}
		work.Status.ManifestConditions = nil
		for i, namespace := range namespaces {
			work.Status.ManifestConditions = append(work.Status.ManifestConditions, placementv1beta1.ManifestCondition{
				Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: i, Group: "networking.k8s.io", Version: "v1", Kind: "Ingress", Resource: "ingresses", Namespace: namespace, Name: "door"},
				Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}},
				BackReportedStatus: &placementv1beta1.BackReportedStatus{ObservationTime: metav1.Now(), ObservedStatus: placementv1beta1.Manifest{
					RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
						`{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"door","namespace":%q},"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, namespace, address)}}},
			})
		}
		return hub.Status().Update(ctx, work)
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

var _ = Describe("Reporting back", func() {
	It("brings the status of what is placed into the resource on the hub, and of nothing else", func(ctx SpecContext) {
		shop(ctx, "ma-shop")
		shop(ctx, "ma-other")
		door(ctx, "ma-shop")
		door(ctx, "ma-other")
		joinAll(ctx, "ma", nil)
		place(ctx, "ma", "ma-shop", mirroring(placementv1beta1.ReportBackToOriginalResource))
		expectAvailable(ctx, "ma", "0")
		work, err := workOf(ctx, "ma-1", "ma")
		Expect(err).NotTo(HaveOccurred())
		Expect(work.Spec.ReportBackStrategy).To(Equal(&placementv1beta1.ReportBackStrategy{
			Type: placementv1beta1.ReportBackMirror, Destination: placementv1beta1.ReportBackToOriginalResource}))

		tell(ctx, "ma-1", "ma", "10.0.0.2", "ma-other", "ma-shop")
		Eventually(addressOf(ctx, "ma-shop")).WithTimeout(soon).WithPolling(often).Should(Equal("10.0.0.2"))
		tell(ctx, "ma-1", "ma", "10.0.0.3", "ma-other", "ma-shop")
		Eventually(addressOf(ctx, "ma-shop")).WithTimeout(soon).WithPolling(often).Should(Equal("10.0.0.3"))
		Expect(addressOf(ctx, "ma-other")()).To(BeEmpty(), "the member claimed a status of what it was never given")

		By("looking that a status on the hub is no change of what is placed")
		expectAvailable(ctx, "ma", "0")
	})

	It("leaves it in the Work if that is the destination, and follows when the placement asks otherwise", func(ctx SpecContext) {
		shop(ctx, "mb-shop")
		door(ctx, "mb-shop")
		joinAll(ctx, "mb", nil)
		place(ctx, "mb", "mb-shop", mirroring(placementv1beta1.ReportBackToWork))
		expectAvailable(ctx, "mb", "0")
		tell(ctx, "mb-1", "mb", "10.0.0.2", "mb-shop")
		destination := func() (placementv1beta1.ReportBackDestination, error) {
			work, err := workOf(ctx, "mb-1", "mb")
			if err != nil || work.Spec.ReportBackStrategy == nil {
				return "", err
			}
			return work.Spec.ReportBackStrategy.Destination, nil
		}
		Expect(destination()).To(Equal(placementv1beta1.ReportBackToWork))
		Expect(addressOf(ctx, "mb-shop")()).To(BeEmpty())

		respec(ctx, "mb", func(spec *placementv1beta1.PlacementSpec) {
			spec.Strategy.ReportBackStrategy.Destination = placementv1beta1.ReportBackToOriginalResource
		})
		Eventually(destination).WithTimeout(soon).WithPolling(often).Should(Equal(placementv1beta1.ReportBackToOriginalResource))
		Eventually(addressOf(ctx, "mb-shop")).WithTimeout(soon).WithPolling(often).Should(Equal("10.0.0.2"))
	})
})
