// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
	"fleetgate.io/fleetgate/pkg/placement/plugins"
)

// World is everything that a decision for a Placement depends on.
type World struct {
	Clusters  []clusterv1.ManagedCluster
	Sets      []clusterv1beta2.ManagedClusterSet
	Bindings  []clusterv1beta2.ManagedClusterSetBinding
	Scores    []clusterv1alpha1.AddOnPlacementScore
	Decisions []ocmclusterv1beta1.PlacementDecision
}

// Explanation is the decision for a Placement, and the reasons.
type Explanation struct {
	// Ranked is the result of the rules and scorers. It is empty if the Placement is invalid.
	framework.Ranked
	// Current are the clusters that the Placement has now.
	Current sets.Set[string]
	// Scorers are the active scorers, in the order of each Place's Parts.
	Scorers []framework.Weighted
	// Rules are the names of the rules, in order.
	Rules []string
	// Misconfigured and Satisfied are the conditions that the Placement would get.
	Misconfigured, Satisfied metav1.Condition
	// Summary counts the clusters by reason.
	Summary string
}

// Explain decides for a Placement as the controller does, and writes nothing. It fails only if no
// expressions can be compiled at all.
func (w *World) Explain(placement *ocmclusterv1beta1.Placement, now time.Time) (*Explanation, error) {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		return nil, err
	}
	from, decisions := newClusterCache(), newDecisionIndex()
	for i := range w.Sets {
		from.setSet(w.Sets[i].Name, &w.Sets[i])
	}
	for i := range w.Bindings {
		from.setBinding(w.Bindings[i].Namespace, w.Bindings[i].Name, true)
	}
	for i := range w.Scores {
		from.setSheet(w.Scores[i].Namespace, w.Scores[i].Name, &w.Scores[i])
	}
	for i := range w.Clusters {
		from.setCluster(&w.Clusters[i])
	}
	key := types.NamespacedName{Namespace: placement.Namespace, Name: placement.Name}
	var existing []*ocmclusterv1beta1.PlacementDecision
	for i := range w.Decisions {
		of := &w.Decisions[i]
		decisions.see(of, false)
		if of.Namespace == key.Namespace && naming.Labelled(of, ocmclusterv1beta1.PlacementLabel) == key.Name {
			existing = append(existing, of)
		}
	}
	slices.SortFunc(existing, func(a, b *ocmclusterv1beta1.PlacementDecision) int { return byNumber(a.Name, b.Name) })
	parsed := parsePlacement(placement, compiler)
	available := from.availableTo(key.Namespace, parsed)
	counts, most := decisions.others(key)
	for i := range available.clusters {
		available.clusters[i].Decided = counts(available.clusters[i].Name)
	}
	return explanationOf(decide(placement, parsed, available, most, now, existing)), nil
}

func explanationOf(r *result) *Explanation {
	e := &Explanation{Ranked: r.ranked, Current: r.policy.Current, Scorers: r.parsed.scorers, Misconfigured: r.misconfigured(), Satisfied: r.satisfied()}
	ranking := plugins.Ranking()
	e.Summary = ranking.Diagnose(&r.policy, &r.fleet, &r.ranked).String()
	for _, rule := range ranking.Rules {
		e.Rules = append(e.Rules, rule.Name())
	}
	if len(r.policy.Spread) > 0 {
		e.Rules = append(e.Rules, ranking.Spread.Name())
	}
	return e
}

// Passing are the names of the clusters that pass a rule and all earlier ones.
func (e *Explanation) Passing(rule int) []string {
	var names []string
	for _, places := range [][]framework.Place{e.Picked, e.Outscored} {
		for _, place := range places {
			names = append(names, place.Cluster.Name)
		}
	}
	for _, refusal := range e.Refusals {
		if slices.Index(e.Rules, refusal.Rule) > rule {
			names = append(names, refusal.Cluster)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
