// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ocmtaints does not pick a cluster with an untolerated taint, and removes one that was
// already picked. There are two exceptions: PreferNoSelect repels nothing, and NoSelectIfNew repels
// only placements that do not have the cluster yet.
//
// A toleration may be limited in time since the taint was added. The verdict expires with it.
package ocmtaints

import (
	"slices"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "TaintToleration"

// The effects of taints.
const (
	// NoSelect removes placements.
	NoSelect = "NoSelect"
	// PreferNoSelect has no effect.
	PreferNoSelect = "PreferNoSelect"
	// NoSelectIfNew repels new placements.
	NoSelectIfNew = "NoSelectIfNew"
)

// Rule implements framework.Rule.
type Rule struct{}

var (
	_ framework.Rule     = Rule{}
	_ framework.Expiring = Rule{}
)

// Name implements framework.Rule.
func (Rule) Name() string { return Name }

// Filter implements framework.Rule.
func (Rule) Filter(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	if taint, _ := firstUntolerated(policy, fleet, cluster); taint != nil {
		return "taint " + taint.String() + " is not tolerated"
	}
	return ""
}

// Brief implements framework.Rule.
func (Rule) Brief(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	if taint, _ := firstUntolerated(policy, fleet, cluster); taint != nil {
		return "tainted " + taint.String()
	}
	return "tainted"
}

// Until implements framework.Expiring: a refusal does not expire.
func (Rule) Until(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) time.Time {
	_, until := firstUntolerated(policy, fleet, cluster)
	return until
}

// HasNoSelectIfNew is true if a cluster has a taint that treats placements with the cluster
// differently from others.
func HasNoSelectIfNew(cluster *framework.Cluster) bool {
	return slices.ContainsFunc(cluster.Taints, func(taint framework.Taint) bool { return taint.Effect == NoSelectIfNew })
}

// firstUntolerated finds the first taint that repels the placement, or when the first of the required
// tolerations ends.
func firstUntolerated(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) (against *framework.Taint, until time.Time) {
	for i := range cluster.Taints {
		taint := &cluster.Taints[i]
		if taint.Effect == PreferNoSelect || taint.Effect == NoSelectIfNew && policy.Current.Has(cluster.Name) {
			continue
		}
		ok, end := tolerated(policy.Tolerations, taint, fleet.Now)
		if !ok {
			return taint, time.Time{}
		}
		if !end.IsZero() && (until.IsZero() || end.Before(until)) {
			until = end
		}
	}
	return nil, until
}

// tolerated is true if any toleration tolerates the taint now, and returns when the longest one
// ends; zero is never.
func tolerated(tolerations []framework.Toleration, taint *framework.Taint, now time.Time) (ok bool, until time.Time) {
	for i := range tolerations {
		if !matches(&tolerations[i], taint) {
			continue
		}
		if tolerations[i].For == nil {
			return true, time.Time{}
		}
		if end := taint.Added.Add(*tolerations[i].For); now.Before(end) && end.After(until) {
			ok, until = true, end
		}
	}
	return ok, until
}

func matches(toleration *framework.Toleration, taint *framework.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect {
		return false
	}
	if toleration.Key != "" && toleration.Key != taint.Key {
		return false
	}
	return toleration.Exists || toleration.Value == taint.Value
}
