// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

var _ = Describe("The example of docs/manifestworks.md", func() {
	It("is rolled out, as it stands, to the canary first", func(ctx SpecContext) {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "manifestworks.md"))
		Expect(err).NotTo(HaveOccurred())
		example := ""
		for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], "kind: ManifestWorkReplicaSet") {
				example = found[1]
			}
		}
		Expect(example).NotTo(BeEmpty())
		set := &workv1alpha1.ManifestWorkReplicaSet{}
		Expect(yaml.UnmarshalStrict([]byte(example), set)).To(Succeed())
		b := newBed(ctx, 3)
		b.place(ctx, "production", b.clusters[:2], b.clusters[2:])
		b.name(ctx, "production-decision-2", "canary")
		set.Namespace = b.namespace
		Expect(hubClient.Create(ctx, set)).To(Succeed())
		Eventually(colours(ctx, set)).Should(Equal(have("blue", b.clusters[2])))
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, progressing, notApplied))
	})
})
