// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"bytes"
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/expect"
)

// deletionOf returns a review for the deletion of a pool, as a client other than the API server can
// send it.
func deletionOf(claimed *unstructured.Unstructured) []byte {
	GinkgoHelper()
	old, err := claimed.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	gvk := claimed.GroupVersionKind()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind(gvk), Operation: admissionv1.Delete,
			Resource:  metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "azuremanagedmachinepools"},
			Namespace: claimed.GetNamespace(), Name: claimed.GetName(), OldObject: runtime.RawExtension{Raw: old},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return body
}

var _ = Describe("Forged reviews of deletions", func() {
	It("reserve nothing, so that no existing pool counts as deleted", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, masters)
		expect.Created(ctx, masters, capiCluster(namespace, "aks"))
		first, second := pool(namespace, "pool1", "System"), pool(namespace, "pool2", "System")
		expect.Created(ctx, masters, first)
		expect.Created(ctx, masters, second)
		other, elsewhere, absent := second.DeepCopy(), second.DeepCopy(), second.DeepCopy()
		other.SetUID(types.UID("another"))
		elsewhere.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "of-another"})
		absent.SetName("absent")
		for _, claimed := range []*unstructured.Unstructured{other, elsewhere, absent} {
			response, err := front.server.Client().Post(front.server.URL+immutability.PathPrefix+"capz-last-system-pool", "application/json", bytes.NewReader(deletionOf(claimed)))
			Expect(err).NotTo(HaveOccurred())
			Expect(response.StatusCode).To(Equal(http.StatusOK))
			Expect(response.Body.Close()).To(Succeed())
		}
		var leases coordinationv1.LeaseList
		Expect(masters.List(ctx, &leases, client.InNamespace(clusterv1beta1.SystemNamespace), client.HasLabels{immutability.LabelGuard})).To(Succeed())
		for _, lease := range leases.Items {
			Expect(lease.Annotations[immutability.AnnotationReservations]).NotTo(ContainSubstring(namespace + "/"))
		}
		Expect(masters.Delete(ctx, first)).To(Succeed())
		Expect(masters.List(ctx, &leases, client.InNamespace(clusterv1beta1.SystemNamespace), client.HasLabels{immutability.LabelGuard})).To(Succeed())
		Expect(leases.Items).To(ContainElement(HaveField("Annotations", HaveKeyWithValue(immutability.AnnotationReservations, ContainSubstring(namespace+"/pool1")))))
	})
})
