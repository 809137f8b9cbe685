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

// mirroring requests the status of resources.
func mirroring(destination placementv1beta1.ReportBackDestination) func(*placementv1beta1.PlacementSpec) {
	return func(spec *placementv1beta1.PlacementSpec) {
		picking(1, nil)(spec)
		spec.Strategy.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror, Destination: destination}
	}
}

// door creates an Ingress in a shop: nobody on this hub writes the status of this kind.
func door(ctx context.Context, namespace string) {
	GinkgoHelper()
	path := networkingv1.PathTypePrefix
	create(ctx, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "door"}, Spec: networkingv1.IngressSpec{
		Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
			Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &path, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}})
}

// addressOf is the address in the hub's Ingress.
func addressOf(ctx context.Context, namespace string) func() (string, error) {
	return func() (string, error) {
		i := &networkingv1.Ingress{}
		if err := hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "door"}, i); err != nil || len(i.Status.LoadBalancer.Ingress) == 0 {
			return "", err
		}
		return i.Status.LoadBalancer.Ingress[0].IP, nil
	}
}

// tell makes a member report the address of the Ingresses in namespaces.
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
	It("copies the status of placed resources, and of nothing else, to the resources on the hub", func(ctx SpecContext) {
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
		Expect(addressOf(ctx, "ma-other")()).To(BeEmpty(), "the member reported a status of a resource that was never placed on it")

		By("checking that a status on the hub is no change of placed resources")
		expectAvailable(ctx, "ma", "0")
	})

	It("does not write the status of what a former author selected, although the member still has it", func(ctx SpecContext) {
		shop(ctx, "mc-former")
		shop(ctx, "mc-present")
		door(ctx, "mc-former")
		door(ctx, "mc-present")
		joinAll(ctx, "mc", nil)
		stagedBy(ctx, "mc", stageOf("all", "mc", ""))
		place(ctx, "mc", "mc-former", func(spec *placementv1beta1.PlacementSpec) {
			mirroring(placementv1beta1.ReportBackToOriginalResource)(spec)
			externally(spec)
			spec.ResourceSelectors = append(spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "mc-present"})
		})
		runOf(ctx, "mc", "mc", "", placementv1beta1.UpdateRunRun)
		expectAvailable(ctx, "mc", "0")
		tell(ctx, "mc-1", "mc", "10.0.0.2", "mc-former", "mc-present")
		for _, namespace := range []string{"mc-former", "mc-present"} {
			Eventually(addressOf(ctx, namespace)).WithTimeout(soon).WithPolling(often).Should(Equal("10.0.0.2"))
		}

		By("selecting only one of them, and no update run that changes the member")
		respec(ctx, "mc", func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors = spec.ResourceSelectors[1:] })
		Eventually(summary).WithContext(ctx).WithArguments("mc").WithTimeout(soon).WithPolling(often).Should(ContainElement(HavePrefix("Scheduled=True/")), "the gateway knows the change")
		tell(ctx, "mc-1", "mc", "10.0.0.3", "mc-former", "mc-present")
		Eventually(addressOf(ctx, "mc-present")).WithTimeout(soon).WithPolling(often).Should(Equal("10.0.0.3"))
		Expect(addressOf(ctx, "mc-former")()).To(Equal("10.0.0.2"), "its status comes first among the member's reports")
	})

	It("keeps it in the Work with destination WorkAPI, and follows a change of the placement", func(ctx SpecContext) {
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
