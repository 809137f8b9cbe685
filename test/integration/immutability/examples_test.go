// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("An example policy", func() {
	It("rejects the documented change once it is enforced", func(ctx SpecContext) {
		text, err := os.ReadFile("../../../examples/policies/1-contract.yaml")
		Expect(err).NotTo(HaveOccurred())
		policy := policyFrom(string(text))
		Expect(policy.Spec.Enforcement).To(Equal(admissionv1alpha1.EnforcementWarn))
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementDeny
		enforce(ctx, policy)

		contract := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(`{apiVersion: v1, kind: ConfigMap, data: {region: west, replicas: "3"}}`), &contract.Object)).To(Succeed())
		contract.SetNamespace(expect.FreshNamespace(ctx, masters))
		contract.SetName("contract")
		contract.SetLabels(map[string]string{"example.org/contract": "true"})
		expect.Created(ctx, masters, contract)
		// Until the API server calls the webhook, a change is accepted. Each attempt needs another value:
		// writing the accepted one again changes nothing.
		attempt := 0
		Eventually(func() error {
			attempt++
			return change(ctx, masters, contract, set("data.region", fmt.Sprintf("east-%d", attempt)))
		}).Should(beInvalid("data.region", "field is immutable"))
		Expect(change(ctx, masters, contract, set("data.replicas", `"11"`))).To(beInvalid("data.replicas", "must be 10 at most"))
		Expect(change(ctx, masters, contract, set("data.replicas", `"4"`))).To(Succeed())
		contract.SetName("no-contract")
		contract.SetResourceVersion("")
		contract.SetUID("")
		contract.SetLabels(nil)
		contract.SetCreationTimestamp(metav1.Time{})
		expect.Created(ctx, masters, contract)
		Expect(change(ctx, masters, contract, set("data.region", "east"))).To(Succeed())
	})
})
