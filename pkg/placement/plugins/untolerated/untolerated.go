// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untolerated is the rule "a cluster with a taint that is not tolerated is not
// picked, and one that is picked already loses it", but for two effects: PreferNoSelect
// keeps nobody away, NoSelectIfNew only those that do not have the placement yet.
//
// A toleration may be for some time since the taint was added. With its end the verdict
// ends.
package untolerated

import (
	"slices"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Name is the rule's name in diagnoses.
const Name = "TaintToleration"

// The effects that taints have here.
const (
	// NoSelect drives placements away.
	NoSelect = "NoSelect"
	// PreferNoSelect does nothing.
	PreferNoSelect = "PreferNoSelect"
	// NoSelectIfNew keeps placements away that are not there yet.
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

// Judge implements framework.Rule.
func (Rule) Judge(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	if taint, _ := look(policy, fleet, cluster); taint != nil {
		return "taint " + taint.String() + " is not tolerated"
	}
	return ""
}

// Brief implements framework.Rule.
func (Rule) Brief(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) string {
	if taint, _ := look(policy, fleet, cluster); taint != nil {
		return "tainted " + taint.String()
	}
	return "tainted"
}

// Until implements framework.Expiring: a no does not end by itself.
func (Rule) Until(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) time.Time {
	_, until := look(policy, fleet, cluster)
	return until
}

// LeavesHolders reports whether a cluster has a taint that makes a difference between
// placements that have the cluster, and others.
func LeavesHolders(cluster *framework.Cluster) bool {
	return slices.ContainsFunc(cluster.Taints, func(taint framework.Taint) bool { return taint.Effect == NoSelectIfNew })
}

// look finds the first taint that stands against the cluster, or when the first of the
// tolerations ends that it is picked by.
func look(policy *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) (against *framework.Taint, until time.Time) {
	for i := range cluster.Taints {
		taint := &cluster.Taints[i]
		if taint.Effect == PreferNoSelect || taint.Effect == NoSelectIfNew && policy.Held.Has(cluster.Name) {
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

// tolerated reports whether any toleration is for the taint now, and until when the one
// is that lasts longest; zero is for ever.
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
