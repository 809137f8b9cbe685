// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugins combines the rules below it. Each rule is a package whose comment states it.
package plugins

import (
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clusteraffinity"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
	"fleetgate.io/fleetgate/pkg/placement/plugins/namespaceaffinity"
	"fleetgate.io/fleetgate/pkg/placement/plugins/tainttoleration"
	"fleetgate.io/fleetgate/pkg/placement/plugins/topologyspread"
)

// Profile returns the rules for each kind of policy. A named cluster is picked whatever its labels
// and taints, if it is eligible.
func Profile(eligible clustereligibility.Rule) framework.Profile {
	choosing := []framework.Rule{clusteraffinity.Rule{}, eligible, namespaceaffinity.Rule{}, tainttoleration.Rule{}}
	return framework.Profile{
		Rules: map[framework.Kind][]framework.Rule{
			framework.PickAll:   choosing,
			framework.PickN:     choosing,
			framework.PickFixed: {eligible},
		},
		Affinity: clusteraffinity.Ranker{},
		Spread:   topologyspread.Spreader{},
	}
}
