// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package predicate requires that a cluster fulfils one of the alternatives completely: its labels,
// its claims, and the caller's condition. Without alternatives every cluster passes.
package predicate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "Predicate"

// Rule implements framework.Rule.
type Rule struct{}

var _ framework.Rule = Rule{}

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Filter implements framework.Rule.
func (Rule) Filter(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
	if len(policy.Required) == 0 {
		return ""
	}
	failed := 0
	var first string
	for i := range policy.Required {
		against := mismatch(&policy.Required[i], cluster)
		if against == "" {
			return ""
		}
		if failed++; failed == 1 {
			first = against
		}
	}
	if failed > 1 {
		return fmt.Sprintf("fits none of %d alternatives", failed)
	}
	return first
}

// Brief implements framework.Rule.
func (r Rule) Brief(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	return r.Filter(policy, fleet, cluster)
}

// mismatch says what a cluster lacks of a term; empty if it matches.
func mismatch(term *framework.Term, cluster *framework.Cluster) string {
	if term.Labels != nil && !term.Labels.Matches(labels.Set(cluster.Labels)) {
		return "lacked label " + term.Labels.String()
	}
	if term.Claims != nil && !term.Claims.Matches(labels.Set(cluster.Properties)) {
		return "lacked claim " + term.Claims.String()
	}
	if term.Matches == nil {
		return ""
	}
	switch matches, err := term.Matches(cluster); {
	case err != nil:
		return "for which an expression fails"
	case !matches:
		return "for which an expression is false"
	}
	return ""
}
