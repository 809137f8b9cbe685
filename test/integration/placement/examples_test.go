// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("Examples", func() {
	DescribeTable("of a page are accepted unchanged, without unknown fields", func(ctx SpecContext, name string) {
		page, err := os.ReadFile("../../../docs/" + name)
		Expect(err).NotTo(HaveOccurred())
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))).To(Succeed())
		examples := regexp.MustCompile("(?s)```yaml\n# (?:apply|simulate:[^\n]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1)
		Expect(examples).NotTo(BeEmpty())
		strict := client.WithFieldValidation(hub, metav1.FieldValidationStrict)
		for _, example := range examples {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(example[1]), &object.Object)).To(Succeed(), example[1])
			Expect(strict.Create(ctx, object, client.DryRunAll)).To(Succeed(), example[1])
		}
	},
		Entry("on placements", "how-to/placement.md"),
		Entry("on policies of placements", "reference/placement.md"),
		Entry("on rollouts", "how-to/rollout.md"),
		Entry("on evictions", "how-to/eviction.md"),
		Entry("on overrides", "how-to/overrides.md"),
		Entry("on placed resources", "reference/placed-resources.md"),
	)

	It("of the folder are accepted unchanged, in the order of their files", func(ctx SpecContext) {
		files, err := filepath.Glob("../../../examples/placement/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 5))
		strict := client.WithFieldValidation(hub, metav1.FieldValidationStrict)
		var made []client.Object
		DeferCleanup(func(ctx SpecContext) {
			for _, object := range slices.Backward(made) {
				Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed())
			}
			if CurrentSpecReport().Failed() {
				for _, object := range made {
					Eventually(expect.Gone(ctx, hub, object)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
				}
			}
		})
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			for document := range strings.SplitSeq(string(text), "\n---\n") {
				object := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed(), file)
				err := strict.Create(ctx, object)
				if apierrors.IsAlreadyExists(err) && object.GetKind() == "Namespace" {
					continue // Several examples cover it.
				}
				Expect(err).NotTo(HaveOccurred(), file)
				made = append(made, object)
			}
		}
	})
})
