// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

var _ = Describe("The examples of docs/placement.md", func() {
	It("are accepted as they are, no field unknown", func(ctx SpecContext) {
		page, err := os.ReadFile("../../../docs/placement.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))).To(Succeed())
		examples := regexp.MustCompile("(?s)```yaml\n# (?:apply|simulate:[^\n]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
		Expect(len(examples)).To(BeNumerically(">", 4))
		strict := client.WithFieldValidation(hub, metav1.FieldValidationStrict)
		for _, example := range examples {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(example[1]), &object.Object)).To(Succeed(), example[1])
			Expect(strict.Create(ctx, object, client.DryRunAll)).To(Succeed(), example[1])
		}
	})
})
