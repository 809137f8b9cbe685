// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// examples returns the YAML blocks of docs/how-to/manifestworkreplicasets.md, the first unchanged and the
// others as changes of it.
func examples() []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "how-to", "manifestworkreplicasets.md"))
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(found[1], "placementRefs") {
			all = append(all, found[1])
		}
	}
	Expect(all).NotTo(BeEmpty())
	return all
}

var _ = Describe("The examples of docs/how-to/manifestworkreplicasets.md", func() {
	It("are rolled out, the first unchanged and to the canary first", func(ctx SpecContext) {
		pieces := examples()
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		Expect(yaml.UnmarshalStrict([]byte(pieces[0]), set)).To(Succeed())
		b := newBed(ctx, 3)
		b.place(ctx, "production", b.clusters[:2], b.clusters[2:])
		b.name(ctx, "production-decision-2", "canary")
		set.Namespace = b.namespace
		Expect(hubClient.Create(ctx, set)).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[2])))
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))
		for _, piece := range pieces[1:] {
			By(piece)
			update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) {
				set.Spec.PlacementRefs = nil
				Expect(yaml.UnmarshalStrict([]byte(piece), set)).To(Succeed())
			})
			Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters...)))
		}
	})

	It("name each field of a ManifestWorkReplicaSet and each value of an enumeration", func() {
		var parsed []map[string]any
		for _, piece := range examples() {
			fields := map[string]any{}
			Expect(yaml.Unmarshal([]byte(piece), &fields)).To(Succeed(), piece)
			parsed = append(parsed, fields["spec"].(map[string]any))
		}
		all, err := crds.ForHub(workv1.GroupName)
		Expect(err).NotTo(HaveOccurred())
		of := slices.IndexFunc(all, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
			return crd.Spec.Names.Plural == "manifestworkreplicasets"
		})
		Expect(of).NotTo(BeNumerically("<", 0))
		spec := all[of].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		Expect(expect.Unnamed(spec, parsed, ".manifestWorkTemplate.")).To(BeEmpty())
	})
})
