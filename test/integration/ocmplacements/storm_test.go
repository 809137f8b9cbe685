// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmplacements_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/program"
)

// storm applies random changes to Placements and to everything that they depend on.
type storm struct {
	*bed
	dice *rand.Rand
	// there are the existing clusters, by number.
	there map[int]bool
	// specs are the specs of the Placements, whose names are their numbers.
	specs []func(*clusterv1beta1.PlacementSpec)
}

func newStorm(ctx context.Context, seed uint64) *storm {
	GinkgoHelper()
	long := int64(3)
	s := &storm{bed: newBed(ctx, 0), dice: rand.New(rand.NewPCG(seed, 1)), there: map[int]bool{}, specs: []func(*clusterv1beta1.PlacementSpec){
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
		func(spec *clusterv1beta1.PlacementSpec) {
			spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(3)
		},
	}}
	for n := range s.specs {
		s.place(ctx, s.placement(n).Name, s.spec(n))
	}
	return s
}

func (s *storm) placement(n int) *clusterv1beta1.Placement {
	return placementOf(s.namespace, fmt.Sprint("p", n))
}

// spec returns the spec of the nth Placement. It does not use Balance, because then the result
// depends on the order of decisions.
func (s *storm) spec(n int) func(*clusterv1beta1.PlacementSpec) {
	return both(s.specs[n], func(spec *clusterv1beta1.PlacementSpec) { spec.PrioritizerPolicy.Mode = clusterv1beta1.ModeExact })
}

// change makes one change, mostly to a cluster or its scores.
func (s *storm) change(ctx context.Context) {
	GinkgoHelper()
	what, n := s.dice.IntN(12), 1+s.dice.IntN(20)
	switch what {
	case 9:
		s.toggle(ctx, s.binding(s.namespace))
	case 10:
		s.changeSet(ctx)
	case 11:
		s.changePlacement(ctx, n%len(s.specs))
	default:
		s.changeCluster(ctx, n, what)
	}
}

// toggle creates an object, or deletes it if it exists.
func (s *storm) toggle(ctx context.Context, object client.Object) {
	GinkgoHelper()
	if err := hubClient.Create(ctx, object); err != nil {
		Expect(client.IgnoreNotFound(hubClient.Delete(ctx, object))).To(Succeed())
	}
}

// changeSet creates or deletes the set, or changes its selector.
func (s *storm) changeSet(ctx context.Context) {
	GinkgoHelper()
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(s.namespace)}
	if s.dice.IntN(2) == 0 {
		s.toggle(ctx, set)
		return
	}
	selector := []string{`{"selectorType": "ExclusiveClusterSetLabel", "labelSelector": null}`, `{"selectorType": "LabelSelector", "labelSelector": {"matchLabels": {"env": "prod"}}}`}[s.dice.IntN(2)]
	Expect(client.IgnoreNotFound(hubClient.Patch(ctx, set, expect.MergePatch(`{"spec": {"clusterSelector": `+selector+`}}`)))).To(Succeed())
}

// changePlacement changes the number of clusters or the sets of a Placement, or re-creates it.
func (s *storm) changePlacement(ctx context.Context, n int) {
	GinkgoHelper()
	switch s.dice.IntN(3) {
	case 0:
		Expect(hubClient.Patch(ctx, s.placement(n), expect.MergePatch(fmt.Sprintf(`{"spec": {"numberOfClusters": %d}}`, s.dice.IntN(10))))).To(Succeed())
	case 1:
		sets := []string{`null`, `["none"]`, fmt.Sprintf(`["none", %q]`, s.namespace)}[s.dice.IntN(3)]
		Expect(hubClient.Patch(ctx, s.placement(n), expect.MergePatch(`{"spec": {"clusterSets": `+sets+`}}`))).To(Succeed())
	default:
		expect.Removed(ctx, hubClient, s.placement(n))
		again := s.placement(n)
		s.spec(n)(&again.Spec)
		expect.Created(ctx, hubClient, again)
	}
}

// changeCluster adds or removes a cluster, or changes what Placements depend on.
func (s *storm) changeCluster(ctx context.Context, n, what int) {
	GinkgoHelper()
	name := s.name(n)
	if !s.there[n] {
		s.join(ctx, name)
		s.there[n] = true
		return
	}
	switch what {
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
		cluster(ctx, name, label(clusterv1.ClusterSetLabel, []string{s.namespace, s.namespace, "other"}[s.dice.IntN(3)]))
	}
}

// calm puts all clusters into a bound set, so that there are clusters to decide on.
func (s *storm) calm(ctx context.Context) {
	GinkgoHelper()
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(s.namespace)}
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, set))).To(Succeed())
	Expect(client.IgnoreAlreadyExists(hubClient.Create(ctx, s.binding(s.namespace)))).To(Succeed())
}

// world is the current input of decisions in a namespace.
func world(ctx context.Context, namespace string) *scheduler.World {
	GinkgoHelper()
	var clusters clusterv1.ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	var decisions clusterv1beta1.PlacementDecisionList
	for _, list := range []client.ObjectList{&clusters, &sets, &scores} {
		Expect(hubClient.List(ctx, list)).To(Succeed())
	}
	for _, list := range []client.ObjectList{&bindings, &decisions} {
		Expect(hubClient.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	}
	return &scheduler.World{Clusters: clusters.Items, Sets: sets.Items, Bindings: bindings.Items, Scores: scores.Items, Decisions: decisions.Items}
}

// settled checks that each Placement has and reports the decision that follows from the hub's
// objects, and that no timed input is about to end.
func (s *storm) settled(ctx context.Context) func(Gomega) {
	return func(g Gomega) {
		now := world(ctx, s.namespace)
		for n := range s.specs {
			is := s.placement(n)
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(is), is)).To(Succeed())
			why, err := now.Explain(is, time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for _, place := range why.Picked {
				names = append(names, place.Cluster.Name)
			}
			g.Expect(chosen(ctx, is)(g)).To(ConsistOf(names), is.Name)
			g.Expect(said(ctx, is)(g)).To(HaveExactElements(
				HaveSuffix(why.Misconfigured.Message), HaveSuffix(fmt.Sprint(why.Satisfied.Reason, ": ", why.Satisfied.Message))), is.Name)
			g.Expect(why.Until).To(BeZero(), "%s is decided again without a change", is.Name)
		}
	}
}

var _ = Describe("After a storm of changes", Serial, func() {
	// rage runs a storm with an extra action after every fiftieth change.
	rage := func(ctx SpecContext, goesOn func(changes int) bool, otherwise, stopped func()) {
		seed := uint64(GinkgoRandomSeed())
		GinkgoWriter.Printf("seed %d\n", seed)
		s := newStorm(ctx, seed)
		changes := 0
		for ; goesOn(changes); changes++ {
			s.change(ctx)
			if changes%50 == 49 {
				otherwise()
			}
		}
		GinkgoWriter.Printf("%d changes\n", changes)
		s.calm(ctx)
		Eventually(s.settled(ctx)).WithPolling(time.Second).Should(Succeed())
		stopped()
		Expect(writes(func() {
			gateway = start()
			By("deciding a new Placement, after which all others were reconciled")
			last := s.place(ctx, "last", both(wants(0)))
			Eventually(said(ctx, last)).Should(HaveLen(2))
		})).To(BeEquivalentTo(3), func() string {
			return "the last one's decision, its status, and the Placement's, of\n" + lastly.String()
		})
		s.settled(ctx)(Default)
	}

	It("a restarted gateway finds every decision up to date", func(ctx SpecContext) {
		rage(ctx, func(changes int) bool { return changes < 250 }, func() {}, gateway.Stop)
	})

	It("of ten minutes with kills, a restarted gateway finds every decision up to date", Label("matrix"), SpecTimeout(20*time.Minute), func(ctx SpecContext) {
		gateway.Stop()
		process := program.Gateway(ctx, hub, "--ocm=placement", "--components=controllers", "--leader-elect=false")
		until := time.Now().Add(10 * time.Minute)
		rage(ctx, func(int) bool { return time.Now().Before(until) }, func() {
			Expect(process.Kill()).To(Succeed())
			Expect(process.Restart(ctx)).To(Succeed())
		}, func() { Expect(process.Stop(ctx)).To(Succeed()) })
	})
})
