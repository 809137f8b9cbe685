// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addonscore scores a cluster by an external score: a value of a score sheet, while it is
// valid. A cluster without it gets 0.
package addonscore

import (
	"time"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Scorer implements framework.Scorer.
type Scorer struct {
	// Sheet is the name of the sheet, Value that of the score in it.
	Sheet, Value string
}

var (
	_ framework.Scorer   = Scorer{}
	_ framework.Expiring = Scorer{}
)

// Name implements framework.Scorer.
func (s Scorer) Name() string { return "AddOn/" + s.Sheet + "/" + s.Value }

// Score implements framework.Scorer.
func (s Scorer) Score(_ *framework.Policy, fleet *framework.Fleet, _ []*framework.Cluster) func(*framework.Cluster) int64 {
	return func(cluster *framework.Cluster) int64 {
		sheet, ok := cluster.Scores[s.Sheet]
		if !ok || !sheet.Valid(fleet.Now) {
			return 0
		}
		return sheet.Values[s.Value]
	}
}

// Until implements framework.Expiring: an expired sheet stays expired.
func (s Scorer) Until(_ *framework.Policy, fleet *framework.Fleet, cluster *framework.Cluster) time.Time {
	if sheet, ok := cluster.Scores[s.Sheet]; ok && sheet.Valid(fleet.Now) {
		return sheet.Until
	}
	return time.Time{}
}
