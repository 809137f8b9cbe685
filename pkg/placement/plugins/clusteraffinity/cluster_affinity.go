// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusteraffinity is the rule "a cluster must fulfil one of the terms
// that the placement requires".
//
// In a term all labels and all properties must match. A property that the
// cluster does not report never matches, nor one that does not read as a
// quantity.
package clusteraffinity

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "ClusterAffinity"

// ReasonNoTerm is the rule's no.
const ReasonNoTerm = "cluster does not match with any of the required cluster affinity terms"

// Rule implements framework.Rule.
type Rule struct{}

var _ framework.Rule = Rule{}

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Judge implements framework.Rule.
func (Rule) Judge(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
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

func matches(term *framework.Term, cluster *framework.Cluster) bool {
	if term.Labels != nil && !term.Labels.Matches(labels.Set(cluster.Labels)) {
		return false
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
	value, err := resource.ParseQuantity(text)
	if err != nil {
		return false
	}
	return compare(value.Cmp(requirement.Value), requirement.Operator)
}

// compare applies the operator to the sign of "property minus wanted value". An
// operator that it does not know matches nothing.
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
