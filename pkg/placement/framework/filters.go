// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "time"

// filters applies the rules to the clusters of one decision. It does not depend on holdings, so a
// decision without holdings uses it too.
type filters struct {
	policy *Policy
	fleet  *Fleet
	rules  []Rule
	// expiring has each rule whose verdicts can expire, at the rule's index.
	expiring []Expiring
	// admitting is true at the index of each rule about new clusters only.
	admitting []bool
	// until is when the first verdict so far expires; zero is never.
	until time.Time
}

func newFilters(rules []Rule, policy *Policy, fleet *Fleet) filters {
	f := filters{policy: policy, fleet: fleet, rules: rules, expiring: make([]Expiring, len(rules)), admitting: make([]bool, len(rules))}
	for i, rule := range rules {
		f.expiring[i], _ = rule.(Expiring)
		_, f.admitting[i] = rule.(Admitting)
	}
	return f
}

// filterAll applies one rule to clusters, and returns those that pass, in place.
func (f *filters) filterAll(rule int, clusters []*Cluster) (passed []*Cluster, refused []Refusal) {
	passed = clusters[:0]
	for _, cluster := range clusters {
		reason := f.filter(rule, cluster)
		if reason == "" {
			passed = append(passed, cluster)
			continue
		}
		refused = append(refused, Refusal{Cluster: cluster.Name, Rule: f.rules[rule].Name(), Reason: reason})
	}
	return passed, refused
}

// filter returns a rule's reason to refuse a cluster, if any, and records when that expires.
func (f *filters) filter(rule int, cluster *Cluster) (reason string) {
	reason = f.rules[rule].Filter(f.policy, f.fleet, cluster)
	if e := f.expiring[rule]; e != nil {
		f.noteExpiry(e.Until(f.policy, f.fleet, cluster))
	}
	return reason
}

// firstRefusal returns the first refusal and its rule; both are empty if there is none. has is true
// for a cluster that has the placement.
func (f *filters) firstRefusal(cluster *Cluster, has bool) (rule, reason string) {
	for i, rule := range f.rules {
		if has && f.admitting[i] {
			continue
		}
		if reason := f.filter(i, cluster); reason != "" {
			return rule.Name(), reason
		}
	}
	return "", ""
}

func (f *filters) noteExpiry(until time.Time) {
	if !until.IsZero() && (f.until.IsZero() || until.Before(f.until)) {
		f.until = until
	}
}
