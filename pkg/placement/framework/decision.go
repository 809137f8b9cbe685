// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "time"

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
	// Until is when the first of the verdicts behind the decision ends by itself,
	// so that it has to be made again; zero is never.
	Until time.Time

	// Refusals are the clusters that were judged and refused, all of them, in no
	// particular order.
	Refusals []Refusal
}

// Choice is what became of one cluster. Who asked for the decision words it.
type Choice struct {
	Cluster string
	Outcome Outcome
	// Reason is the rule's, if one is the cause.
	Reason string
	// Score is nil if the cluster was not ranked.
	Score *Score
}

// Outcome is what became of a cluster.
type Outcome int

const (
	// Picked has the placement.
	Picked Outcome = iota
	// Outscored passed all rules, and others were better.
	Outscored
	// Refused was refused by a rule.
	Refused
	// Ineligible was named by the policy, and refused by a rule.
	Ineligible
	// Unknown was named by the policy, and is not in the fleet.
	Unknown
	// Outside was named by the policy, and is not one of those that the policy is
	// limited to.
	Outside
)

// Refusal is one rule's no to one cluster.
type Refusal struct {
	Cluster string
	Rule    string
	Reason  string
}
