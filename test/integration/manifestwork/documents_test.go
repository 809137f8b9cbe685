// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// examples are the pieces of YAML of docs/manifestworks.md, in their order.
func examples() []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "manifestworks.md"))
	Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		if !strings.Contains(string(found[1]), "kind: ManifestWorkReplicaSet") { // test/integration/replicasets applies it
			all = append(all, string(found[1]))
		}
	}
	return all
}

var _ = Describe("The examples of docs/manifestworks.md", func() {
	It("are applied: the first as it stands, the others as what they add to it", func(ctx SpecContext) {
		pieces := examples()
		Expect(len(pieces)).To(BeNumerically(">=", 6))
		atHub, err := hub.Kubeconfig("reader", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, atHub, pieces[0], "apply", "-f", "-")
		DeferCleanup(func(ctx SpecContext) { removeWork(ctx, "my-first-work") })
		Eventually(conditions(ctx, "my-first-work")).Should(beDone())
		for _, piece := range pieces[1:] {
			By(piece)
			updateWork(ctx, "my-first-work", func(work *workv1.ManifestWork) {
				work.Spec = workv1.ManifestWorkSpec{Workload: work.Spec.Workload}
				Expect(yaml.UnmarshalStrict([]byte(whole(piece)), work)).To(Succeed())
			})
			if work := getWork(ctx, "my-first-work"); work.Spec.Executor != nil {
				Eventually(conditions(ctx, "my-first-work")).Should(ContainElement(workFailed), "nobody gave the account its rights")
				continue
			}
			Eventually(conditions(ctx, "my-first-work")).Should(ContainElements(workApplied, workAvailable))
		}
	})
})

// whole makes a ManifestWork of a piece that begins somewhere within one.
func whole(piece string) string {
	GinkgoHelper()
	fields := map[string]any{}
	Expect(yaml.Unmarshal([]byte(piece), &fields)).To(Succeed())
	config := map[string]any{"resourceIdentifier": map[string]any{"resource": "configmaps", "namespace": "default", "name": "settings"}}
	switch {
	case fields["serverSideApply"] != nil:
		config["updateStrategy"] = map[string]any{"type": "ServerSideApply", "serverSideApply": fields["serverSideApply"]}
		fields = map[string]any{"spec": map[string]any{"manifestConfigs": []any{config}}}
	case fields["manifestConfigs"] != nil:
		fields = map[string]any{"spec": fields}
	}
	Expect(fields).To(HaveKey("spec"), piece)
	text, err := yaml.Marshal((&unstructured.Unstructured{Object: fields}).Object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
