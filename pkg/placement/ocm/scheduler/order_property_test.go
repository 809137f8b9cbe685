// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// history is the events of each object, in order.
type history [][]func(*clusterCache)

// dealt is a random history: clusters that are added, changed and removed, their scores, sets and
// their bindings.
func dealt(dice *rand.Rand) history {
	var all history
	for n := range 12 {
		name := fmt.Sprintf("c%02d", n)
		var own, said []func(*clusterCache)
		for range 1 + dice.IntN(3) {
			object := managed(name, func(c *clusterv1.ManagedCluster) {
				c.Labels[clusterv1.ClusterSetLabel] = []string{"set", "set", "other"}[dice.IntN(3)]
				c.Labels["env"] = []string{"prod", "test"}[dice.IntN(2)]
				c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: []string{"eu", "us"}[dice.IntN(2)]}}
				c.Status.Capacity = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
				c.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(1 + dice.IntN(4)))}
				if dice.IntN(4) == 0 {
					c.Spec.Taints = []clusterv1.Taint{{Key: "maintenance", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(noon)}}
				}
			})
			own = append(own, func(r *clusterCache) { r.setCluster(object) })
		}
		if dice.IntN(5) == 0 {
			own = append(own, func(r *clusterCache) { r.removeCluster(name) })
		}
		for range dice.IntN(3) {
			object := sheet(name, int32(dice.IntN(5)), nil)
			said = append(said, func(r *clusterCache) { r.setSheet(name, "usage", object) })
		}
		all = append(all, own, said)
	}
	for _, name := range []string{"set", "other"} {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		there := dice.IntN(3) > 0
		all = append(all, []func(*clusterCache){func(r *clusterCache) { r.setSet(name, set) }},
			[]func(*clusterCache){func(r *clusterCache) { r.setBinding("team", name, true) }, func(r *clusterCache) { r.setBinding("team", name, there) }})
	}
	return all
}

// lived is a cache after the history, with events of different objects in a random order.
func (h history) lived(dice *rand.Rand) *clusterCache {
	r := newClusterCache()
	left := make([][]func(*clusterCache), 0, len(h))
	for _, own := range h {
		if len(own) > 0 {
			left = append(left, own)
		}
	}
	for len(left) > 0 {
		at := dice.IntN(len(left))
		left[at][0](r)
		if left[at] = left[at][1:]; len(left[at]) == 0 {
			left = append(left[:at], left[at+1:]...)
		}
	}
	return r
}

func TestProperty_OrderOfEventsDoesNotMatter(t *testing.T) {
	placements := map[string]*ocmclusterv1beta1.Placement{
		"all":      placed(nil),
		"by score": placed(func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) }),
		"prod": placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
			spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
		}),
		"by expression": placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
			spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.status.clusterClaims.exists(c, c.value == "eu")`}
		}),
	}
	parsed := map[string]*parsedPlacement{}
	for name, placement := range placements {
		parsed[name] = mustParse(t, placement)
	}
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 3))
		h := dealt(dice)
		first, second := h.lived(dice), h.lived(dice)
		for name, placement := range placements {
			p := parsed[name]
			a := decide(placement, p, first.availableTo("team", p), 0, noon, nil)
			b := decide(placement, p, second.availableTo("team", p), 0, noon, nil)
			if diff := cmp.Diff(clustersIn(a), clustersIn(b)); diff != "" {
				t.Fatalf("seed %d, placement %q: two orders of the same events differ:\n%s", seed, name, diff)
			}
			if diff := cmp.Diff(a.satisfied(), b.satisfied()); diff != "" {
				t.Fatalf("seed %d, placement %q: two orders of the same events have different results:\n%s", seed, name, diff)
			}
		}
	}
}

func clustersIn(o *result) (all [][]string) {
	for i := range o.slices {
		all = append(all, o.slices[i].clusters())
	}
	return all
}

// Decisions are stable when nothing has changed: a restarted gateway moves nothing.
func TestProperty_DecisionsAreStable(t *testing.T) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	five := int32(5)
	for seed := range uint64(2000) {
		dice := rand.New(rand.NewPCG(seed, 5))
		placement := placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.NumberOfClusters = &five
			spec.PrioritizerPolicy = ocmclusterv1beta1.PrioritizerPolicy{Mode: ocmclusterv1beta1.ModeExact, Configurations: []ocmclusterv1beta1.PrioritizerConfig{{
				ScoreCoordinate: ocmclusterv1beta1.ScoreCoordinate{Type: ocmclusterv1beta1.CoordinateBuiltIn, BuiltIn: []string{"Steady", "ResourceAllocatableCPU"}[dice.IntN(2)]}, Weight: 1,
			}}}
			if dice.IntN(2) == 0 {
				spec.SpreadPolicy.SpreadConstraints = []ocmclusterv1beta1.SpreadConstraint{{
					TopologyKey: "region", TopologyKeyType: ocmclusterv1beta1.TopologyClaim, MaxSkew: 1, WhenUnsatisfiable: ocmclusterv1beta1.DoNotSchedule,
				}}
			}
		})
		w, r := parsePlacement(placement, compiler), cacheOf()
		var held []ocmclusterv1beta1.ClusterDecision
		for n := range 10 {
			name := fmt.Sprintf("c%02d", n)
			r.setCluster(managed(name, func(c *clusterv1.ManagedCluster) {
				c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: []string{"eu", "us", "asia"}[dice.IntN(3)]}}
				c.Status.Capacity = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
				c.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(1 + dice.IntN(4)))}
				if effect := dice.IntN(4); effect < 2 {
					c.Spec.Taints = []clusterv1.Taint{{Key: "maintenance", Effect: []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew}[effect], TimeAdded: metav1.NewTime(noon)}}
				}
			}))
			if dice.IntN(2) == 0 {
				held = append(held, ocmclusterv1beta1.ClusterDecision{ClusterName: name})
			}
		}
		before := []*ocmclusterv1beta1.PlacementDecision{{Status: ocmclusterv1beta1.PlacementDecisionStatus{Decisions: held}}}
		first := decide(placement, w, r.availableTo("team", w), 0, noon, before)
		again := decide(placement, w, r.availableTo("team", w), 0, noon, decisionsOf(first))
		if diff := cmp.Diff(clustersIn(first), clustersIn(again)); diff != "" {
			t.Fatalf("seed %d: the same is decided otherwise:\n%s", seed, diff)
		}
		if diff := cmp.Diff(first.satisfied(), again.satisfied()); diff != "" {
			t.Fatalf("seed %d: same state, different result:\n%s", seed, diff)
		}
	}
}
