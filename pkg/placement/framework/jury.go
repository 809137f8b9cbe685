// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "time"

// jury is the rules while they judge the clusters of one decision. It knows nothing
// of holdings: a way to decide that keeps none asks it too.
type jury struct {
	policy *Policy
	fleet  *Fleet
	rules  []Rule
	// expiring has at a rule's place the rule, if its verdicts can end.
	expiring []Expiring
	// until is when the first of the verdicts so far ends; zero is never.
	until time.Time
}

func newJury(rules []Rule, policy *Policy, fleet *Fleet) jury {
	j := jury{policy: policy, fleet: fleet, rules: rules, expiring: make([]Expiring, len(rules))}
	for i, rule := range rules {
		j.expiring[i], _ = rule.(Expiring)
	}
	return j
}

// sift asks one rule about clusters, and returns those that it lets pass, in place.
func (j *jury) sift(rule int, clusters []*Cluster) (passed []*Cluster, refused []Refusal) {
	passed = clusters[:0]
	for _, cluster := range clusters {
		reason := j.ask(rule, cluster)
		if reason == "" {
			passed = append(passed, cluster)
			continue
		}
		refused = append(refused, Refusal{Cluster: cluster.Name, Rule: j.rules[rule].Name(), Reason: reason})
	}
	return passed, refused
}

// ask returns what a rule has against a cluster, if anything, and notes when that ends.
func (j *jury) ask(rule int, cluster *Cluster) (reason string) {
	reason = j.rules[rule].Judge(j.policy, j.fleet, cluster)
	if e := j.expiring[rule]; e != nil {
		j.note(e.Until(j.policy, j.fleet, cluster))
	}
	return reason
}

// judge returns the first no, and whose it is; both are empty if there is none.
func (j *jury) judge(cluster *Cluster) (rule, reason string) {
	for i, rule := range j.rules {
		if reason := j.ask(i, cluster); reason != "" {
			return rule.Name(), reason
		}
	}
	return "", ""
}

func (j *jury) note(until time.Time) {
	if !until.IsZero() && (j.until.IsZero() || until.Before(j.until)) {
		j.until = until
	}
}
