// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"slices"
	"strings"
)

// Decision is what has to change, and what then holds.
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
	// carried out, in the order of their names.
	Selected []Choice
	// Unselected are clusters that the policy asked for but did not get, in the
	// order of their names. Only policies that ask for certain clusters, or a
	// number, have them.
	Unselected []Choice
	// Fulfilled is false if the policy asked for more than there is.
	Fulfilled bool

	// Diagnosis says why the other clusters are not among the selected.
	Diagnosis Diagnosis
}

// Choice is a cluster with the reason for or against it.
type Choice struct {
	Cluster string
	Reason  string
}

// Refusal is one rule's no to one cluster.
type Refusal struct {
	Cluster string
	Rule    string
	Reason  string
}

// Diagnosis explains a decision.
type Diagnosis struct {
	// Total counts the clusters of the fleet.
	Total int
	// Fit counts those that are selected.
	Fit int
	// Refusals are the clusters that were judged and refused, in the order of
	// their names.
	Refusals []Refusal
}

// String counts the refusals by reason: "1 of 3 clusters fit: 2 refused by
// TaintToleration (...)".
func (d Diagnosis) String() string {
	head := fmt.Sprintf("%d of %d clusters fit", d.Fit, d.Total)
	if len(d.Refusals) == 0 {
		return head
	}
	counts := map[string]int{}
	for _, r := range d.Refusals {
		counts[r.Rule+" ("+r.Reason+")"]++
	}
	parts := make([]string, 0, len(counts))
	for reason, n := range counts {
		parts = append(parts, fmt.Sprintf("%d refused by %s", n, reason))
	}
	slices.Sort(parts)
	return head + ": " + strings.Join(parts, ", ")
}
