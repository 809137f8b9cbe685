// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tainttoleration picks a tainted cluster only for a placement that tolerates all its
// taints, and never with a taint that evicts the placement. It concerns only new picks: a cluster
// that has the placement keeps it whatever taints it gets.
package tainttoleration

import (
	"slices"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "TaintToleration"

// Rule implements framework.Rule.
type Rule struct{}

var _ framework.Rule = Rule{}

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Filter implements framework.Rule.
func (Rule) Filter(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
	if taint := firstUntolerated(policy, cluster); taint != nil {
		return "taint " + taint.String() + " is not tolerated"
	}
	return ""
}

// Brief implements framework.Rule.
func (Rule) Brief(policy *framework.Policy, _ *framework.Fleet, cluster *framework.Cluster) string {
	return "tainted " + firstUntolerated(policy, cluster).String()
}

// firstUntolerated returns the first taint that is not tolerated, or nil.
func firstUntolerated(policy *framework.Policy, cluster *framework.Cluster) *framework.Taint {
	for i := range cluster.Taints {
		if slices.Contains(policy.Avoid, cluster.Taints[i].Key) || !tolerated(cluster.Taints[i], policy.Tolerations) {
			return &cluster.Taints[i]
		}
	}
	return nil
}

func tolerated(taint framework.Taint, tolerations []framework.Toleration) bool {
	for _, toleration := range tolerations {
		if tolerates(toleration, taint) {
			return true
		}
	}
	return false
}

func tolerates(toleration framework.Toleration, taint framework.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect {
		return false
	}
	if toleration.Key == "" {
		return toleration.Exists
	}
	if toleration.Key != taint.Key {
		return false
	}
	return toleration.Exists || toleration.Value == taint.Value
}
