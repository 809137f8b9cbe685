// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// examples returns the YAML blocks of the guide on ManifestWorks, then those of the reference.
func examples() []string {
	GinkgoHelper()
	var all []string
	for _, folder := range []string{"how-to", "reference"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", folder, "manifestworks.md"))
		Expect(err).NotTo(HaveOccurred())
		for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			all = append(all, string(found[1]))
		}
	}
	return all
}

var _ = Describe("The examples of the pages on ManifestWorks", func() {
	It("are applied, the first unchanged and the others as additions to it", func(ctx SpecContext) {
		pieces := examples()
		Expect(len(pieces)).To(BeNumerically(">=", 6))
		atHub, err := hub.Kubeconfig("reader", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, atHub, pieces[0], "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, "my-first-work") })
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
		add := func(piece string) {
			updateWork(ctx, "my-first-work", func(work *workv1.ManifestWork) {
				work.Spec = workv1.ManifestWorkSpec{Workload: work.Spec.Workload}
				Expect(yaml.UnmarshalStrict([]byte(piece), work)).To(Succeed())
			})
		}
		for _, piece := range pieces[1:] {
			By(piece)
			add(piece)
			if work := getWork(ctx, "my-first-work"); work.Spec.Executor != nil {
				Eventually(conditions(ctx, "my-first-work")).Should(ContainElement(workFailed), "the account has no rights yet")
				continue
			}
			Eventually(conditions(ctx, "my-first-work")).Should(ContainElements(workApplied, workAvailable))
		}
		add("spec: {}") // removes all objects
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
	})

	It("name each field of a ManifestWork and each value of an enumeration", func() {
		var parsed []map[string]any
		for _, piece := range examples() {
			fields := map[string]any{}
			Expect(yaml.Unmarshal([]byte(piece), &fields)).To(Succeed(), piece)
			Expect(fields).To(HaveKey("spec"), piece)
			parsed = append(parsed, fields["spec"].(map[string]any))
		}
		Expect(expect.Unnamed(specOf("manifestworks"), parsed)).To(BeEmpty())
	})
})

// specOf returns the schema of a kind's spec.
func specOf(plural string) apiextensionsv1.JSONSchemaProps {
	GinkgoHelper()
	all, err := crds.ForHub(workv1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	for _, crd := range all {
		if crd.Spec.Names.Plural == plural {
			return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		}
	}
	Fail("there is no kind " + plural)
	return apiextensionsv1.JSONSchemaProps{}
}
