// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusteraffinity requires that a cluster fulfils one of the placement's required terms,
// and ranks clusters by the preferred ones.
//
// All labels and all properties of a term must match. A property that the cluster does not report
// never matches, nor does one that is not a quantity. Properties do not count while the cluster has
// reported nothing at all.
package clusteraffinity

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "ClusterAffinity"

// ReasonNoTerm is the reason of a refusal.
const ReasonNoTerm = "cluster does not match with any of the required cluster affinity terms"

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
	for i := range policy.Required {
		if matches(&policy.Required[i], cluster) {
			return ""
		}
	}
	return ReasonNoTerm
}

// Brief implements framework.Rule. For a single term it names the first part that does not match.
func (Rule) Brief(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
	if len(policy.Required) > 1 {
		return fmt.Sprintf("fulfilled none of the %d required terms", len(policy.Required))
	}
	for _, term := range policy.Required {
		if brief := briefly(&term, cluster); brief != "" {
			return brief
		}
	}
	return "did not fulfil the required term"
}

func briefly(term *framework.Term, cluster *framework.Cluster) string {
	if term.Labels != nil {
		requirements, _ := term.Labels.Requirements()
		for _, r := range requirements {
			if !r.Matches(labels.Set(cluster.Labels)) {
				return label(r)
			}
		}
	}
	for _, r := range term.Properties {
		if _, reported := cluster.Properties[r.Name]; !reported {
			return "did not report " + r.Name
		}
		if !fulfils(r, cluster.Properties) {
			return fmt.Sprintf("did not have %s %s %s", r.Name, r.Operator, r.Value.String())
		}
	}
	return ""
}

// label says how a cluster fails to fulfil r.
func label(r labels.Requirement) string {
	values := strings.Join(r.ValuesUnsorted(), ",")
	switch {
	case r.Operator() == selection.DoesNotExist:
		return "had label " + r.Key()
	case r.Operator() == selection.NotIn || r.Operator() == selection.NotEquals:
		return "had label " + r.Key() + "=" + values
	case len(r.ValuesUnsorted()) == 1:
		return "lacked label " + r.Key() + "=" + values
	}
	return "lacked label " + r.String()
}

func matches(term *framework.Term, cluster *framework.Cluster) bool {
	if term.Labels != nil && !term.Labels.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	if !cluster.Agent.Reported {
		return true // A restored hub knows no properties. ClusterEligibility refuses new placements.
	}
	for _, requirement := range term.Properties {
		if !fulfils(requirement, cluster.Properties) {
			return false
		}
	}
	return true
}

func fulfils(requirement framework.PropertyRequirement, properties map[string]string) bool {
	text, ok := properties[requirement.Name]
	if !ok {
		return false
	}
	value, err := untrusted.Quantity(text)
	if err != nil {
		return false
	}
	return compare(value.Cmp(requirement.Value), requirement.Operator)
}

// compare applies the operator to the sign of "property minus wanted value". An unknown operator
// matches nothing.
func compare(sign int, operator framework.Operator) bool {
	switch operator {
	case framework.GreaterThan:
		return sign > 0
	case framework.GreaterOrEqual:
		return sign >= 0
	case framework.EqualTo:
		return sign == 0
	case framework.NotEqualTo:
		return sign != 0
	case framework.LessThan:
		return sign < 0
	case framework.LessOrEqual:
		return sign <= 0
	}
	return false
}
