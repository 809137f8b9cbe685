// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/ocmtaints"
	"fleetgate.io/fleetgate/pkg/placement/plugins/predicate"
	"fleetgate.io/fleetgate/pkg/placement/plugins/topologyspread"
)

// Ranking returns the rules for placements that are decided from the beginning each time. Their
// policies choose the scorers.
func Ranking() framework.Ranking {
	return framework.Ranking{
		Rules:  []framework.Rule{predicate.Rule{}, ocmtaints.Rule{}},
		Spread: topologyspread.Spreader{LimitOnly: true},
	}
}
