// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaceaffinity is the rule "a placement that lives in a namespace
// goes where that namespace is". Clusters that do not report their namespaces
// pass: the rule would rather try than be wrong.
package namespaceaffinity

import "fleetgate.io/fleetgate/pkg/placement/framework"

// Name is the rule's name in diagnoses.
const Name = "NamespaceAffinity"

// missing is what clients of KubeFleet's API know it by.
const missing = "target namespace does not exist on cluster"

// Rule implements framework.Rule.
type Rule struct{}

var _ framework.Rule = Rule{}

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Judge implements framework.Rule.
func (Rule) Judge(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
	if policy.Namespace == "" || cluster.Namespaces == nil {
		return ""
	}
	if _, found := cluster.Namespaces[policy.Namespace]; found {
		return ""
	}
	return missing
}

// Brief implements framework.Rule.
func (Rule) Brief(policy *framework.Policy, _ *framework.Fleet, _ *framework.Cluster) string {
	return "lacked namespace " + policy.Namespace
}
