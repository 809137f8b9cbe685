// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("The examples of the pages on Placements of OCM", Serial, func() {
	It("have the documented results", func(ctx SpecContext) {
		var text []byte
		for _, folder := range []string{"how-to", "reference"} {
			page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", folder, "placements-ocm.md"))
			Expect(err).NotTo(HaveOccurred())
			text = append(text, page...)
		}
		Expect(hubClient.Create(ctx, build.Namespace("team-a"))).To(Succeed())
		b := &bed{namespace: "prod"}
		b.set(ctx, "prod")
		for name, about := range map[string]struct {
			env, region string
			score       int32
		}{"doc1": {"prod", "eu", 10}, "doc2": {"test", "eu", 60}, "doc3": {"test", "us", 20}} {
			b.join(ctx, name)
			cluster(ctx, name, label("env", about.env))
			cluster(ctx, name, claim("region", about.region))
			score(ctx, name, about.score, nil)
		}
		for _, found := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			admin(ctx, found[1], "apply", "-f", "-")
			placed := &clusterv1beta1.Placement{}
			Expect(yaml.Unmarshal([]byte(found[1]), placed)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { expect.Removed(ctx, hubClient, placementOf("team-a", placed.Name)) })
		}
		for name, want := range map[string][]string{
			"chosen": {"doc1", "doc2"}, "roomy": {"doc1", "doc2", "doc3"}, "grouped": {"doc1", "doc2", "doc3"},
		} {
			Eventually(chosen(ctx, placementOf("team-a", name))).Should(ConsistOf(want), name)
		}
		Eventually(chosen(ctx, placementOf("team-a", "production"))).Should(HaveLen(2))
		Eventually(chosen(ctx, placementOf("team-a", "spread"))).Should(And(HaveLen(2), ContainElement("doc3")))
		grouped := decisions(ctx, placementOf("team-a", "grouped"))
		Expect(grouped).To(HaveLen(3))
		Expect(grouped[0].Labels).To(HaveKeyWithValue(clusterv1beta1.DecisionGroupNameLabel, "canary"))
		Expect(grouped[0].Status.Decisions[0].Score).NotTo(BeNil())
	})
})
