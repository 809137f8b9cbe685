// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "time"

// Decision is what has to change, and the result. Names are sorted unless another order is stated.
type Decision struct {
	// Add are clusters that get the placement and have no holding.
	Add []string
	// Adopt are clusters whose holding, of an earlier policy or about to be withdrawn, is reused
	// for the current policy.
	Adopt []string
	// Drop are clusters that lose the placement.
	Drop []string
	// Waiting are selected clusters that cannot be added yet because they have a terminating
	// holding. Decide again once that is gone.
	Waiting []string

	// Selected are all clusters that have the placement once the decision is carried out.
	Selected []Choice
	// Unselected are clusters that the policy asked for but did not get. Under PickFixed they are
	// sorted by name. Under PickN the outscored ones come first, the best first, then the refused
	// ones, up to the profile's limit. PickAll has none.
	Unselected []Choice
	// Outscored counts the clusters that were eligible but not good enough.
	Outscored int
	// Fulfilled is false if the policy asked for more than there is.
	Fulfilled bool
	// Settled is true if a PickN policy already had everything, so that no other cluster was
	// considered.
	Settled bool
	// Until is when the first verdict behind the decision expires, so that it has to be made again;
	// zero is never.
	Until time.Time

	// Refusals are all clusters that were filtered and refused, in no particular order.
	Refusals []Refusal
}

// Choice is the result for one cluster. The caller writes the text about it.
type Choice struct {
	Cluster string
	Result  Result
	// Reason is the rule's, if a rule is the cause.
	Reason string
	// Score is nil if the cluster was not ranked.
	Score *Score
}

// Result is the type of a result.
type Result int

const (
	// Picked has the placement.
	Picked Result = iota
	// Outscored passed all rules, and others were better.
	Outscored
	// Refused was refused by a rule.
	Refused
	// Ineligible was named by the policy, and refused by a rule.
	Ineligible
	// Unknown was named by the policy, and is not in the fleet.
	Unknown
	// Outside was named by the policy, and is outside the policy's limits.
	Outside
)

// Refusal is one rule's refusal of one cluster.
type Refusal struct {
	Cluster string
	Rule    string
	Reason  string
}
