// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "time"

// judges applies the rules to the clusters of one decision. It does not depend on holdings, so a
// decision without holdings uses it too.
type judges struct {
	policy *Policy
	fleet  *Fleet
	rules  []Rule
	// expiring has each rule whose verdicts can expire, at the rule's index.
	expiring []Expiring
	// until is when the first verdict so far expires; zero is never.
	until time.Time
}

func newJudges(rules []Rule, policy *Policy, fleet *Fleet) judges {
	j := judges{policy: policy, fleet: fleet, rules: rules, expiring: make([]Expiring, len(rules))}
	for i, rule := range rules {
		j.expiring[i], _ = rule.(Expiring)
	}
	return j
}

// sift applies one rule to clusters, and returns those that pass, in place.
func (j *judges) sift(rule int, clusters []*Cluster) (passed []*Cluster, refused []Refusal) {
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

// ask returns a rule's reason to refuse a cluster, if any, and records when that expires.
func (j *judges) ask(rule int, cluster *Cluster) (reason string) {
	reason = j.rules[rule].Judge(j.policy, j.fleet, cluster)
	if e := j.expiring[rule]; e != nil {
		j.note(e.Until(j.policy, j.fleet, cluster))
	}
	return reason
}

// judge returns the first refusal and its rule; both are empty if there is none.
func (j *judges) judge(cluster *Cluster) (rule, reason string) {
	for i, rule := range j.rules {
		if reason := j.ask(i, cluster); reason != "" {
			return rule.Name(), reason
		}
	}
	return "", ""
}

func (j *judges) note(until time.Time) {
	if !until.IsZero() && (j.until.IsZero() || until.Before(j.until)) {
		j.until = until
	}
}
