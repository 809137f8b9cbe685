// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/scheduler"
)

// Result is the decision about one placement, for people and programs.
type Result struct {
	// Placement is its name, with the namespace as a prefix if it has one.
	Placement string `json:"placement"`
	// Type is the placement type.
	Type string `json:"type"`
	// Fulfilled is false if the policy asks for more members than are eligible.
	Fulfilled bool `json:"fulfilled"`
	// Summary counts the clusters by reason.
	Summary string `json:"summary"`
	// Clusters are the selected ones, then those that lose the placement, then others with a reason in
	// the decision.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is the decision for one cluster.
type Cluster struct {
	Name     string `json:"name"`
	Selected bool   `json:"selected"`
	// Change is the change there: Add, Adopt, Keep, Wait, Drop, or nothing.
	Change Change `json:"change,omitempty"`
	// AffinityScore and TopologySpreadScore are empty without a ranking.
	AffinityScore       *int32 `json:"affinityScore,omitempty"`
	TopologySpreadScore *int32 `json:"topologySpreadScore,omitempty"`
	// Score is the sum of the scorers, for Placements of Open Cluster Management.
	Score *int64 `json:"score,omitempty"`
	// Rule is the plugin that rejected the cluster.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Change is what a decision does to a cluster.
type Change string

const (
	// Add places resources for the first time.
	Add Change = "Add"
	// Adopt keeps resources of an earlier policy, or those that were about to be removed.
	Adopt Change = "Adopt"
	// Keep leaves the member as it is.
	Keep Change = "Keep"
	// Wait places resources once the previous ones are removed.
	Wait Change = "Wait"
	// Drop removes the placement.
	Drop Change = "Drop"
)

// Options are the circumstances of the decision.
type Options struct {
	// Now is the time of the decision.
	Now time.Time
	// PolicyChanged treats the bindings as results of an earlier policy, as if the placement replaced
	// the one that created them.
	PolicyChanged bool
}

// Run decides for each placement. It changes nothing in the input.
func Run(profile framework.Profile, in *Input, o Options) ([]Result, error) {
	fleet := &framework.Fleet{Now: o.Now, Clusters: make([]framework.Cluster, 0, len(in.Members))}
	for i := range in.Members {
		fleet.Clusters = append(fleet.Clusters, clusterOf(&in.Members[i], o.Now))
	}
	results := make([]Result, 0, len(in.Placements))
	for _, placement := range in.Placements {
		policy, err := scheduler.PolicyOf(placement.GetSpec().Policy, placement.GetNamespace())
		if err != nil {
			return nil, fmt.Errorf("placement %q: %w", placement.GetName(), err)
		}
		scheduler.AddTerms(policy, placement)
		decision, err := profile.Decide(policy, fleet, holdingsOf(placement, in.Bindings, o.PolicyChanged))
		if err != nil {
			return nil, fmt.Errorf("placement %q: %w", placement.GetName(), err)
		}
		results = append(results, Result{
			Placement: klog.KObj(placement).String(), Type: string(policy.Kind), Fulfilled: decision.Fulfilled,
			Summary:  profile.Diagnose(policy, fleet, &decision).String(),
			Clusters: clustersOf(&decision),
		})
	}
	chosen, err := runOCM(in, o.Now)
	return append(results, chosen...), err
}

// clusterOf translates a member; one without a status counts as healthy.
func clusterOf(member *clusterv1beta1.MemberCluster, now time.Time) framework.Cluster {
	cluster := scheduler.ClusterOf(member)
	if equality.Semantic.DeepEqual(member.Status, clusterv1beta1.MemberClusterStatus{}) {
		cluster.Agent = framework.Agent{Reported: true, LastHeartbeat: now, Joined: true, Health: framework.Healthy}
	}
	return cluster
}

func holdingsOf(placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, policyChanged bool) []framework.Holding {
	var mine []placementv1beta1.BindingObject
	for _, b := range bindings {
		if b.GetNamespace() == placement.GetNamespace() && b.GetLabels()[placementv1beta1.ParentPlacementLabel] == placement.GetName() {
			mine = append(mine, b)
		}
	}
	holdings := scheduler.HoldingsOf(mine)
	for i := range holdings {
		holdings[i].Current = !policyChanged
	}
	return holdings
}

func clustersOf(decision *framework.Decision) []Cluster {
	changes := map[string]Change{}
	for change, names := range map[Change][]string{Add: decision.Add, Adopt: decision.Adopt, Wait: decision.Waiting} {
		for _, name := range names {
			changes[name] = change
		}
	}
	var all []Cluster
	for _, choice := range decision.Selected {
		all = append(all, withScore(Cluster{
			Name: choice.Cluster, Selected: true, Change: cmp.Or(changes[choice.Cluster], Keep), Reason: "picked by scheduling policy",
		}, choice.Score))
	}
	index := map[string]int{}
	for _, name := range decision.Drop {
		index[name] = len(all)
		all = append(all, Cluster{Name: name, Change: Drop, Reason: "the policy no longer picks it"})
	}
	add := func(c Cluster) {
		if i, seen := index[c.Name]; seen {
			c.Change = all[i].Change
			all[i] = c
			return
		}
		index[c.Name] = len(all)
		all = append(all, c)
	}
	for _, choice := range decision.Unselected {
		add(withScore(Cluster{Name: choice.Cluster, Reason: scheduler.ReasonOf(choice)}, choice.Score))
	}
	for _, r := range decision.Refusals {
		add(Cluster{Name: r.Cluster, Rule: r.Rule, Reason: r.Reason})
	}
	return all
}

func withScore(c Cluster, score *framework.Score) Cluster {
	if score != nil {
		c.AffinityScore, c.TopologySpreadScore = &score.Affinity, &score.Spread
	}
	return c
}
