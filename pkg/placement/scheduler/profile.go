// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clusteraffinity"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
	"fleetgate.io/fleetgate/pkg/placement/plugins/tainttoleration"
)

// Profile is which rules judge for which kind of policy. Who names a cluster
// gets it whatever its labels and taints.
func Profile() framework.Profile {
	return framework.Profile{
		framework.PickAll:   {clusteraffinity.Rule{}, clustereligibility.Rule{}, tainttoleration.Rule{}},
		framework.PickFixed: {clustereligibility.Rule{}},
	}
}
