// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/build"
	"fleetgate.io/fleetgate/test/expect"
	"fleetgate.io/fleetgate/test/program"
)

// storm changes whatever Placements look at, at random.
type storm struct {
	*bed
	dice *rand.Rand
	// there are the clusters, by number.
	there map[int]bool
}

func (s *storm) change(ctx context.Context) {
	GinkgoHelper()
	n := 1 + s.dice.IntN(20)
	if !s.there[n] {
		s.join(ctx, s.name(n))
		s.there[n] = true
		return
	}
	name := s.name(n)
	switch s.dice.IntN(9) {
	case 0:
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)})
		delete(s.there, n)
	case 1:
		cluster(ctx, name, taint([]clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew}[s.dice.IntN(2)]))
	case 2:
		cluster(ctx, name, untaint)
	case 3:
		cluster(ctx, name, label("env", []string{"prod", "test"}[s.dice.IntN(2)]))
	case 4:
		cluster(ctx, name, claim("region", []string{"eu", "us"}[s.dice.IntN(2)]))
	case 5:
		cluster(ctx, name, cpu(fmt.Sprint(1+s.dice.IntN(9))))
	case 6:
		score(ctx, name, int32(s.dice.IntN(200)-100), nil)
	case 7:
		until := metav1.NewTime(time.Now().Add(time.Duration(s.dice.IntN(3)) * time.Second))
		score(ctx, name, int32(s.dice.IntN(200)-100), &until)
	case 8:
		binding := s.binding(s.namespace)
		if err := hubClient.Create(ctx, binding); err != nil {
			Expect(client.IgnoreNotFound(hubClient.Delete(ctx, binding))).To(Succeed())
		}
	}
}

// heard returns once the gateway has heard of all that has happened: news of a kind come in
// their order, so that who has decided rightly by an object of each that came last knows the
// others.
func heard(ctx context.Context) {
	GinkgoHelper()
	last := newBed(ctx, 2)
	score(ctx, last.name(2), 1, nil)
	Eventually(chosen(ctx, last.place(ctx, "heard", both(wants(1), scores("usage/cpu"))))).Should(Equal(last.names(2)))
}

// settled returns once no decision and no status has changed for longer than a taint is
// tolerated, or a score is valid, here.
func settled(ctx context.Context, all []*clusterv1beta1.Placement) {
	GinkgoHelper()
	versions := func() (versions []string) {
		for _, p := range all {
			for _, decision := range decisions(ctx, p) {
				versions = append(versions, decision.Name+" "+decision.ResourceVersion)
			}
			is := p.DeepCopy()
			Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(p), is)).To(Succeed())
			versions = append(versions, is.Name+" "+is.ResourceVersion)
		}
		return versions
	}
	var last []string
	Eventually(func() bool {
		before := last
		last = versions()
		return slices.Equal(before, last)
	}).WithPolling(4 * time.Second).Should(BeTrue())
}

var _ = Describe("After a storm of changes", Serial, func() {
	// rage has a storm go on, in which something else happens after every fiftieth change.
	rage := func(ctx SpecContext, goesOn func(changes int) bool, otherwise, stopped func()) {
		seed := uint64(GinkgoRandomSeed())
		GinkgoWriter.Printf("seed %d\n", seed)
		s := &storm{bed: newBed(ctx, 0), dice: rand.New(rand.NewPCG(seed, 1)), there: map[int]bool{}}
		long := int64(3)
		var all []*clusterv1beta1.Placement
		for i, spec := range []func(*clusterv1beta1.PlacementSpec){
			func(*clusterv1beta1.PlacementSpec) {},
			both(wants(5), scores("usage/cpu")),
			both(wants(5), scores("ResourceAllocatableCPU")),
			both(wants(5), scores("Steady"), selects(func(s *clusterv1beta1.ClusterSelector) {
				s.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
			})),
			both(wants(9), tolerates(clusterv1beta1.Toleration{Key: "maintenance", Operator: "Exists", TolerationSeconds: &long})),
			both(wants(9), selects(func(s *clusterv1beta1.ClusterSelector) {
				s.CELSelector.CELExpressions = []string{`managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu")`}
			})),
			both(wants(6), func(spec *clusterv1beta1.PlacementSpec) {
				spec.SpreadPolicy.SpreadConstraints = []clusterv1beta1.SpreadConstraint{{TopologyKey: "region", TopologyKeyType: "Claim", MaxSkew: 1, WhenUnsatisfiable: "DoNotSchedule"}}
			}),
		} {
			// Decisions of others wake nobody: with Balance, who is decided last decides best.
			all = append(all, s.place(ctx, fmt.Sprintf("p%d", i), both(spec, func(spec *clusterv1beta1.PlacementSpec) { spec.PrioritizerPolicy.Mode = clusterv1beta1.ModeExact })))
		}
		for changes := 0; goesOn(changes); changes++ {
			s.change(ctx)
			if changes%50 == 49 {
				otherwise()
			}
		}
		if err := hubClient.Create(ctx, s.binding(s.namespace)); err == nil {
			By("the set is bound in the end")
		}
		heard(ctx)
		// What has an end has ended.
		settled(ctx, all)
		stopped()
		Expect(writes(func() {
			gateway = start()
			By("decides for one that comes, and so has looked at all")
			last := s.place(ctx, "last", both(wants(0)))
			Eventually(said(ctx, last)).Should(HaveLen(2))
			all = append(all, last)
		})).To(BeEquivalentTo(3), func() string {
			return "the last one's decision, its status, and the Placement's, of\n" + lastly.String()
		})
		for _, p := range all {
			Expect(said(ctx, p)(Default)).To(HaveLen(2))
		}
	}

	It("a gateway that begins anew finds every decision as it would make it", func(ctx SpecContext) {
		rage(ctx, func(changes int) bool { return changes < 250 }, func() {}, gateway.Stop)
	})

	It("of ten minutes, with kills, a gateway that begins anew finds every decision as it would make it", Label("matrix"), SpecTimeout(20*time.Minute), func(ctx SpecContext) {
		gateway.Stop()
		process := program.Gateway(ctx, hub, "--ocm=placement", "--components=controllers", "--leader-elect=false")
		until := time.Now().Add(10 * time.Minute)
		rage(ctx, func(int) bool { return time.Now().Before(until) }, func() {
			Expect(process.Kill()).To(Succeed())
			Expect(process.Restart(ctx)).To(Succeed())
		}, func() { Expect(process.Stop(ctx)).To(Succeed()) })
	})
})
