// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/predicate"
	"fleetgate.io/fleetgate/pkg/placement/plugins/topologyspread"
	"fleetgate.io/fleetgate/pkg/placement/plugins/untolerated"
)

// Ranking is which rules judge for placements that are decided anew each time. Who scores
// for them they say themselves.
func Ranking() framework.Ranking {
	return framework.Ranking{
		Rules:  []framework.Rule{predicate.Rule{}, untolerated.Rule{}},
		Spread: topologyspread.Spreader{LimitOnly: true},
	}
}
