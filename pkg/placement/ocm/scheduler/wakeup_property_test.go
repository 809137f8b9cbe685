// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// change changes something that Placements read.
func (h *lateHub) change(ctx context.Context, t *testing.T) {
	t.Helper()
	h.mu.Lock()
	n, what, flip, value := h.dice.IntN(8), h.dice.IntN(8), h.dice.IntN(2), h.dice.IntN(5)
	h.mu.Unlock()
	name, namespace := fmt.Sprintf("c%02d", n), []string{"team", "other"}[flip]
	cluster := managed(name, nil)
	there := h.Get(ctx, client.ObjectKeyFromObject(cluster), cluster) == nil
	var err error
	switch {
	case what == 0:
		err = h.toggle(ctx, &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "set"}})
	case what == 1:
		err = h.toggle(ctx, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}})
	case what == 2:
		until := metav1.NewTime(time.Now().Add(time.Duration(value) * time.Second))
		score := sheet(name, int32(value), []*metav1.Time{nil, &until}[flip])
		if is := sheet(name, 0, nil); h.Get(ctx, client.ObjectKeyFromObject(is), is) == nil {
			is.Status = score.Status
			err = h.Update(ctx, is)
		} else {
			err = h.Create(ctx, score)
		}
	case !there:
		err = h.Create(ctx, managed(name, nil))
	case what == 3:
		err = h.Delete(ctx, cluster)
	case what == 4:
		cluster.Spec.Taints = nil
		if value < 4 {
			effect := []clusterv1.TaintEffect{clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew}[flip]
			cluster.Spec.Taints = []clusterv1.Taint{{Key: "maintenance", Effect: effect, TimeAdded: metav1.Now()}}
		}
		err = h.Update(ctx, cluster)
	case what == 5:
		cluster.Labels["env"] = []string{"prod", "test"}[flip]
		err = h.Update(ctx, cluster)
	case what == 6:
		cluster.Labels[clusterv1.ClusterSetLabel] = []string{"set", "none"}[flip]
		err = h.Update(ctx, cluster)
	default:
		cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: []string{"eu", "us"}[flip]}}
		err = h.Update(ctx, cluster)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// toggle creates an object, or deletes it if it exists.
func (h *lateHub) toggle(ctx context.Context, object client.Object) error {
	if h.Get(ctx, client.ObjectKeyFromObject(object), object) == nil {
		return h.Delete(ctx, object)
	}
	return h.Create(ctx, object)
}

// cache is built from the existing objects.
func (h *lateHub) cache(ctx context.Context, t *testing.T) *clusterCache {
	t.Helper()
	var clusters clusterv1.ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	for _, list := range []client.ObjectList{&clusters, &sets, &bindings, &scores} {
		if err := h.List(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	r := newClusterCache()
	for i := range clusters.Items {
		r.setCluster(&clusters.Items[i])
	}
	for i := range sets.Items {
		r.setSet(sets.Items[i].Name, &sets.Items[i])
	}
	for _, b := range bindings.Items {
		r.setBinding(b.Namespace, b.Name, true)
	}
	for i := range scores.Items {
		r.setSheet(scores.Items[i].Namespace, scores.Items[i].Name, &scores.Items[i])
	}
	return r
}

// stale returns what a restarted gateway would write.
func (h *lateHub) stale(ctx context.Context, t *testing.T, compiler *clustercel.Compiler) (all []string) {
	t.Helper()
	r := h.cache(ctx, t)
	var placements ocmclusterv1beta1.PlacementList
	if err := h.List(ctx, &placements); err != nil {
		t.Fatal(err)
	}
	for i := range placements.Items {
		p := &placements.Items[i]
		if isDisabled(p) {
			continue
		}
		var list ocmclusterv1beta1.PlacementDecisionList
		if err := h.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingLabels{ocmclusterv1beta1.PlacementLabel: p.Name}); err != nil {
			t.Fatal(err)
		}
		var existing []*ocmclusterv1beta1.PlacementDecision
		for j := range list.Items {
			existing = append(existing, &list.Items[j])
		}
		slices.SortFunc(existing, func(a, b *ocmclusterv1beta1.PlacementDecision) int { return byNumber(a.Name, b.Name) })
		w := parsePlacement(p, compiler)
		o := decide(p, w, r.availableTo(p.Namespace, w), 0, time.Now(), existing)
		there := byName(existing)
		for j := range o.slices {
			if is := there[o.slices[j].name]; is == nil || !isAs(is, p, &o.slices[j]) {
				all = append(all, fmt.Sprintf("%s/%s: %v should be %v", p.Namespace, o.slices[j].name, is, o.slices[j].clusters()))
			}
		}
		if len(existing) > len(o.slices) {
			all = append(all, fmt.Sprintf("%s/%s has %d decisions instead of %d", p.Namespace, p.Name, len(existing), len(o.slices)))
		}
		if diff := cmp.Diff(o.status(p, time.Now()), p.Status); diff != "" {
			all = append(all, fmt.Sprintf("%s/%s:\n%s", p.Namespace, p.Name, diff))
		}
	}
	return all
}

// meddle changes what Placements or somebody else wrote.
func (h *lateHub) meddle(ctx context.Context, t *testing.T) {
	t.Helper()
	h.mu.Lock()
	n, what, team := h.dice.IntN(placementsEach), h.dice.IntN(8), h.dice.IntN(2)
	h.mu.Unlock()
	namespace := []string{"team", "other"}[team]
	p := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("p", n)}}
	d := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("p%d-decision-1", n)}}
	var err error
	switch what {
	case 0:
		err = h.Delete(ctx, d)
	case 1:
		err = h.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"status": {"decisions": [{"clusterName": "c00", "reason": ""}]}}`)))
	case 2:
		err = h.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"cluster.open-cluster-management.io/placement": "nobody"}}}`)))
	case 3:
		err = h.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"status": {"numberOfSelectedClusters": 7, "conditions": null}}`)))
	case 4:
		err = h.Patch(ctx, p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "true"}}}`, ocmclusterv1beta1.DisableAnnotation)))
	case 5:
		err = h.Patch(ctx, p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: null}}}`, ocmclusterv1beta1.DisableAnnotation)))
	case 6:
		if err = h.Get(ctx, client.ObjectKeyFromObject(p), p); err == nil {
			p.Generation++
			p.Spec.ClusterSets = [][]string{nil, {"set"}, {"none"}}[n%3]
			err = h.Update(ctx, p)
		}
	default:
		if err = h.Delete(ctx, p); err == nil {
			err = h.Create(ctx, h.placement(namespace, n))
		}
	}
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// placementsEach is the number of Placements in each namespace.
const placementsEach = 7

// placement is the nth Placement of a namespace, with a new random spec each time.
func (h *lateHub) placement(namespace string, n int) *ocmclusterv1beta1.Placement {
	seconds, three := int64(2), int32(3)
	p := placed([]func(*ocmclusterv1beta1.PlacementSpec){
		nil, one, func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) },
		func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.Tolerations = []ocmclusterv1beta1.Toleration{{Key: "maintenance", Operator: ocmclusterv1beta1.OperatorExists, TolerationSeconds: &seconds}}
		},
		func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
			spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.status.clusterClaims.exists(c, c.value == "eu")`}
		},
		func(spec *ocmclusterv1beta1.PlacementSpec) {
			byUsage(spec)
			spec.SortBy, spec.ScoreRateLimit = ocmclusterv1beta1.SortByScore, "3s"
		},
		func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.NumberOfClusters = &three
			spec.SpreadPolicy.SpreadConstraints = []ocmclusterv1beta1.SpreadConstraint{{TopologyKey: "env", MaxSkew: 1, WhenUnsatisfiable: ocmclusterv1beta1.DoNotSchedule}}
			spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromInt32(1)
		},
	}[n])
	h.mu.Lock()
	defer h.mu.Unlock()
	p.Namespace, p.Name, p.UID = namespace, fmt.Sprint("p", n), types.UID(fmt.Sprint(namespace, n, h.writes))
	p.Spec.PrioritizerPolicy.Mode = ocmclusterv1beta1.ModeExact
	return p
}

// Events arrive late and in different order, writes fail, others change the written objects, and
// gateways are killed. In the end every Placement has what a restarted gateway would give it.
func TestProperty_NoLateEventIsLost(t *testing.T) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				h := newLateHub(ctx, t, rand.New(rand.NewPCG(seed, 4)))
				gateway, kill := context.WithCancel(ctx)
				h.decide(gateway, t, compiler)
				for n := range placementsEach {
					for _, namespace := range []string{"team", "other"} {
						if err := h.Create(ctx, h.placement(namespace, n)); err != nil {
							t.Fatal(err)
						}
					}
				}
				for changes := range 150 {
					if changes%60 == 59 {
						kill()
						gateway, kill = context.WithCancel(ctx)
						h.decide(gateway, t, compiler)
					}
					h.change(ctx, t)
					if h.oneIn(4) {
						h.meddle(ctx, t)
					}
					time.Sleep(h.while(60 * time.Millisecond))
				}
				time.Sleep(time.Minute)
				for _, stale := range h.stale(ctx, t, compiler) {
					t.Error(stale)
				}
				kill()
				cancel()
				synctest.Wait()
			})
		})
	}
}

// Placements that count each other's decisions do not trigger each other endlessly. When a cluster
// is added, each is decided once and written at most once, however late the events arrive.
func TestProperty_NewClusterTriggersOneDecisionPerPlacement(t *testing.T) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	const placements = 20
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			h := newLateHub(ctx, t, rand.New(rand.NewPCG(seed, 6)))
			h.flawless = true
			decisions := h.decide(ctx, t, compiler)
			objects := []client.Object{&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}},
				&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}}}
			for n := range 10 {
				objects = append(objects, managed(fmt.Sprintf("c%02d", n), nil))
			}
			for n := range placements {
				p := placed(one)
				p.Name, p.UID = fmt.Sprint("p", n), types.UID(fmt.Sprint("p", n))
				objects = append(objects, p)
			}
			for _, object := range objects {
				if err := h.Create(ctx, object); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			decidedBefore, writtenBefore := decisions(), h.written()
			if err := h.Create(ctx, managed("c10", nil)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := decisions() - decidedBefore; got != placements {
				t.Errorf("seed %d: %d decisions of %d Placements", seed, got, placements)
			}
			if got := h.written() - writtenBefore - 1; got > 2*placements {
				t.Errorf("seed %d: %d writes for %d Placements, want at most two for each", seed, got, placements)
			}
		})
	}
}
