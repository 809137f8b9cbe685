// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaceaffinity requires the target namespace of a placement on the cluster. Clusters
// that do not report their namespaces pass, because a failed attempt is better than a wrong
// refusal.
package namespaceaffinity

import "fleetgate.io/fleetgate/pkg/placement/framework"

// Name is the rule's name in diagnoses.
const Name = "NamespaceAffinity"

// missing is the message that clients of KubeFleet's API match.
const missing = "target namespace does not exist on cluster"

// Rule implements framework.Rule.
type Rule struct{}

var _ framework.Rule = Rule{}

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Filter implements framework.Rule.
func (Rule) Filter(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
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
