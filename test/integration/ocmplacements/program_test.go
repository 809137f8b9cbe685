// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

var _ = Describe("The gateway's program with --apis=ocm --ocm=placement", Serial, func() {
	It("installs only its own kinds, and waits for those of clusters", func(ctx SpecContext) {
		bare, err := env.Start(ctx, env.Options{Name: "bare"})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(bare.Stop(ctx)).To(Succeed()) })
		ports, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		program.Gateway(ctx, bare, "--ocm=placement", "--install", "--external-name=localhost", "--leader-elect=false", fmt.Sprintf("--secure-port=%d", ports[0]))
		there := expect.Client(bare.Config(), kinds())
		Eventually(func() []string {
			definitions := &apiextensionsv1.CustomResourceDefinitionList{}
			Expect(there.List(ctx, definitions)).To(Succeed())
			var names []string
			for _, definition := range definitions.Items {
				names = append(names, definition.Name)
			}
			slices.Sort(names)
			return names
		}).Should(Equal(slices.Sorted(slices.Values(crds.Placements()))))
		p := &clusterv1beta1.Placement{ObjectMeta: build.In("default", "p")}
		Eventually(func() error { return there.Create(ctx, p) }).Should(Succeed())
		serve(bare, clusterKinds()...)
		joined := &clusterv1.ManagedCluster{ObjectMeta: build.Named("c1")}
		joined.Labels = map[string]string{clusterv1.ClusterSetLabel: "default"}
		b := &bed{namespace: "default"}
		expect.Created(ctx, there, joined, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("default")}, b.binding("default"))
		Eventually(func(g Gomega) int32 {
			g.Expect(there.Get(ctx, client.ObjectKeyFromObject(p), p)).To(Succeed())
			return p.Status.NumberOfSelectedClusters
		}).Should(BeEquivalentTo(1))

		By("explaining decisions at its own endpoint to authorized users")
		newCurious(ctx, there, ports[0]).learnsWhy(ctx, bare)
	})

	It("makes the same decisions as a gateway that was never killed", func(ctx SpecContext) {
		gateway.Stop()
		DeferCleanup(func() { gateway = start() })
		process := program.Gateway(ctx, hub, "--ocm=placement", "--components=controllers", "--leader-elect=false")
		b := newBed(ctx, 230)
		spread := b.place(ctx, "all", nil)
		few := b.place(ctx, "few", both(wants(3), scores("usage/cpu")))
		for n := 1; n <= 3; n++ {
			cluster(ctx, b.name(n), taint(clusterv1.TaintEffectNoSelect))
			score(ctx, b.name(10*n), int32(n), nil)
			Expect(process.Kill()).To(Succeed())
			Expect(process.Restart(ctx)).To(Succeed())
			cluster(ctx, b.name(n+3), taint(clusterv1.TaintEffectNoSelect))
		}
		Eventually(chosen(ctx, spread)).Should(HaveLen(224))
		Eventually(chosen(ctx, few)).Should(Equal(b.names(10, 20, 30)))
		names := chosen(ctx, spread)(Default)
		slices.Sort(names)
		Expect(slices.Compact(names)).To(HaveLen(224))
		Expect(decisions(ctx, spread)).To(HaveLen(3), fmt.Sprint(names))
		Eventually(said(ctx, spread)).Should(HaveExactElements(fine, satisfied))
	})
})
