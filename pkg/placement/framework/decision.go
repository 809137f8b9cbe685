// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "fmt"

// Decision is what has to change, and what then holds. Names are in order where
// nothing else is said.
type Decision struct {
	// Add are clusters that get the placement anew.
	Add []string
	// Adopt are clusters whose holding, of an earlier policy or about to be
	// withdrawn, serves the policy of now.
	Adopt []string
	// Drop are clusters that lose the placement.
	Drop []string
	// Waiting are selected clusters that cannot be added yet because they have a
	// terminating holding. Once that is gone the decision has to be made again.
	Waiting []string

	// Selected are all clusters that have the placement once the decision is
	// carried out.
	Selected []Choice
	// Unselected are clusters that the policy asked for but did not get: under
	// PickFixed in the order of their names; under PickN those that were not
	// good enough, the best first, then those that were refused, as many of both
	// as the profile tells. PickAll has none.
	Unselected []Choice
	// Outscored counts the clusters that were not good enough.
	Outscored int
	// Fulfilled is false if the policy asked for more than there is.
	Fulfilled bool
	// Settled is true if a PickN policy had all that it wants, so that no other
	// cluster was looked at.
	Settled bool

	// Refusals are the clusters that were judged and refused, all of them, in no
	// particular order.
	Refusals []Refusal
}

// Choice is a cluster with the reason for or against it.
type Choice struct {
	Cluster string
	Reason  string
	// Score is nil if the cluster was not ranked.
	Score *Score
}

// Refusal is one rule's no to one cluster.
type Refusal struct {
	Cluster string
	Rule    string
	Reason  string
}

// Clients compare these texts.
const (
	selectedFormat       = "Successfully scheduled resources for placement in %q: picked by scheduling policy"
	selectedScoredFormat = "Successfully scheduled resources for placement in %q (affinity score: %d, topology spread score: %d): picked by scheduling policy"
	notPickedFormat      = "Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)"
	notFoundFormat       = "Specified cluster %q is not found"
	notEligibleFormat    = "Cluster %q is not eligible for resource placement yet: %s"
	refusedPrefix        = "ClusterUnschedulable, "
)

// Selected is the choice of a cluster that was picked with a score, or, if that
// is nil, without ranking.
func Selected(cluster string, score *Score) Choice {
	if score == nil {
		return Choice{Cluster: cluster, Reason: fmt.Sprintf(selectedFormat, cluster)}
	}
	return Choice{Cluster: cluster, Score: score, Reason: fmt.Sprintf(selectedScoredFormat, cluster, score.Affinity, score.Spread)}
}
