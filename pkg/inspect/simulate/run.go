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
	// Placement is its name, with its namespace in front if it has one.
	Placement string `json:"placement"`
	// Type is the placement type.
	Type string `json:"type"`
	// Fulfilled is false if the policy asks for more than there is.
	Fulfilled bool `json:"fulfilled"`
	// Summary counts the clusters by reason.
	Summary string `json:"summary"`
	// Clusters are those that are selected, then those that lose the placement,
	// then the others of which the decision says something.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is what a decision says of one cluster.
type Cluster struct {
	Name     string `json:"name"`
	Selected bool   `json:"selected"`
	// Change is what happens there: Add, Adopt, Keep, Wait, Drop, or nothing.
	Change Change `json:"change,omitempty"`
	// AffinityScore and TopologySpreadScore are empty where nobody was ranked.
	AffinityScore       *int32 `json:"affinityScore,omitempty"`
	TopologySpreadScore *int32 `json:"topologySpreadScore,omitempty"`
	// Score is the sum of what scorers give, in Placements of Open Cluster Management.
	Score *int64 `json:"score,omitempty"`
	// Rule is who refused the cluster.
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Change is what a decision does to a cluster.
type Change string

const (
	// Add places where nothing was placed.
	Add Change = "Add"
	// Adopt keeps what an earlier policy placed, or what was about to go.
	Adopt Change = "Adopt"
	// Keep leaves it as it is.
	Keep Change = "Keep"
	// Wait places once what was there before is gone.
	Wait Change = "Wait"
	// Drop takes the placement away.
	Drop Change = "Drop"
)

// Options say under which circumstances is decided.
type Options struct {
	// Now is the time of the decision.
	Now time.Time
	// PolicyChanged takes the bindings for those of an earlier policy: what would
	// happen if the placement replaced the one that made them.
	PolicyChanged bool
}

// Run decides about each placement. It changes nothing in the input.
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

// clusterOf translates a member; one without any status is taken for healthy.
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
	told := map[string]int{}
	for _, name := range decision.Drop {
		told[name] = len(all)
		all = append(all, Cluster{Name: name, Change: Drop, Reason: "the policy does not pick it any more"})
	}
	tell := func(c Cluster) {
		if i, seen := told[c.Name]; seen {
			c.Change = all[i].Change
			all[i] = c
			return
		}
		told[c.Name] = len(all)
		all = append(all, c)
	}
	for _, choice := range decision.Unselected {
		tell(withScore(Cluster{Name: choice.Cluster, Reason: scheduler.ReasonOf(choice)}, choice.Score))
	}
	for _, r := range decision.Refusals {
		tell(Cluster{Name: r.Cluster, Rule: r.Rule, Reason: r.Reason})
	}
	return all
}

func withScore(c Cluster, score *framework.Score) Cluster {
	if score != nil {
		c.AffinityScore, c.TopologySpreadScore = &score.Affinity, &score.Spread
	}
	return c
}
