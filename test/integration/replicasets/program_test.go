// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicasets_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/test/support/program"
)

// names returns the names of a set's ManifestWorks.
func names(ctx context.Context, set *workv1alpha1.ManifestWorkReplicaSet) []string {
	GinkgoHelper()
	var all []string
	for _, work := range worksOf(ctx, set) {
		all = append(all, work.Namespace+"/"+work.Name)
	}
	return all
}

var _ = Describe("The gateway's program with --apis=ocm --ocm=works", func() {
	It("creates no ManifestWork twice although it is killed repeatedly during a rollout", func(ctx SpecContext) {
		const clusters = 60
		gateway.stop()
		DeferCleanup(func() { gateway = start() })
		process := program.Gateway(ctx, hub, "--ocm=works", "--components=controllers", "--leader-elect=false")
		b := newBed(ctx, clusters)
		b.place(ctx, "p", b.clusters)
		set := b.set(ctx, "web", some("p", 20, nil))
		rollOut := func(colour string) {
			GinkgoHelper()
			reported := map[string]bool{}
			for len(reported) < clusters {
				var now []string
				Eventually(func() []string {
					now = nil
					for _, one := range colours(ctx, set)() {
						if cluster, ok := strings.CutSuffix(one, "="+colour); ok && !reported[cluster] {
							now = append(now, cluster)
						}
					}
					return now
				}).ShouldNot(BeEmpty())
				Expect(process.Kill()).To(Succeed())
				done(ctx, set, now...)
				for _, cluster := range now {
					reported[cluster] = true
				}
				Expect(process.Restart(ctx)).To(Succeed())
			}
		}
		rollOut("blue")
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		made := names(ctx, set)
		Expect(made).To(HaveLen(clusters))

		By("another template under the same conditions")
		update(ctx, set, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.ManifestWorkTemplate = template("red") })
		rollOut("red")
		Eventually(said(ctx, set)).Should(HaveExactElements(verified, rolledOut, applied))
		Expect(names(ctx, set)).To(ConsistOf(made))
	})
})
