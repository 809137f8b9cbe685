// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diagnosis explains a decision in numbers.
type Diagnosis struct {
	// Total counts the clusters of the fleet.
	Total int
	// Selected counts those that are selected.
	Selected int
	// Others count the rest by reason, the largest number first.
	Others []Count
}

// Count is the number of clusters with the same reason.
type Count struct {
	Clusters int
	// Reason is a few words: "lacked label env=prod".
	Reason string
}

// maxReasons limits the reasons in a sentence; fleets can have as many taints as clusters.
const maxReasons = 10

// String is a sentence: "3 of 40 clusters fit: 20 lacked label env=prod, 17 tainted team=red".
func (d Diagnosis) String() string {
	head := fmt.Sprintf("%d of %d clusters fit", d.Selected, d.Total)
	if len(d.Others) == 0 {
		return head
	}
	parts, rest := make([]string, 0, maxReasons+1), 0
	for i, o := range d.Others {
		if i < maxReasons {
			parts = append(parts, fmt.Sprintf("%d %s", o.Clusters, o.Reason))
		} else {
			rest += o.Clusters
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", rest))
	}
	return head + ": " + strings.Join(parts, ", ")
}

// Diagnose explains a decision of this profile for the policy and the fleet. It is separate from
// deciding because few decisions are ever read.
func (p Profile) Diagnose(policy *Policy, fleet *Fleet, decision *Decision) Diagnosis {
	fleet = fleet.within(policy.Within)
	counts := briefs(p.Rules[policy.Kind], policy, fleet, decision.Refusals)
	if decision.Outscored > 0 {
		counts["scored lower"] = decision.Outscored
	}
	for _, u := range decision.Unselected {
		switch u.Result {
		case Unknown:
			counts["named but not in the fleet"]++
		case Outside:
			counts["named but out of bounds"]++
		}
	}
	return diagnosis(len(fleet.Clusters), len(decision.Selected), counts)
}

// briefs counts refusals by their rules' brief reasons.
func briefs(active []Rule, policy *Policy, fleet *Fleet, refusals []Refusal) map[string]int {
	counts := map[string]int{}
	rules := map[string]Rule{}
	for _, rule := range active {
		rules[rule.Name()] = rule
	}
	clusters := make(map[string]*Cluster, len(fleet.Clusters))
	for i := range fleet.Clusters {
		clusters[fleet.Clusters[i].Name] = &fleet.Clusters[i]
	}
	for _, r := range refusals {
		if rule := rules[r.Rule]; rule != nil {
			counts[rule.Brief(policy, fleet, clusters[r.Cluster])]++
		} else {
			counts[r.Reason]++
		}
	}
	return counts
}

// diagnosis sorts counts.
func diagnosis(total, selected int, counts map[string]int) Diagnosis {
	d := Diagnosis{Total: total, Selected: selected}
	for reason, n := range counts {
		d.Others = append(d.Others, Count{Clusters: n, Reason: reason})
	}
	slices.SortFunc(d.Others, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Clusters, a.Clusters), strings.Compare(a.Reason, b.Reason))
	})
	return d
}
