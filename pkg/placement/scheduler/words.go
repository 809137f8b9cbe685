// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
)

// Profile decides for placements of this API family.
func Profile() framework.Profile { return plugins.Profile(eligible()) }

func eligible() clustereligibility.Rule {
	return clustereligibility.Rule{Unapproved: clusterv1beta1.TaintUnapproved}
}

// Clients compare these texts.
const (
	selectedFormat       = "Successfully scheduled resources for placement in %q: picked by scheduling policy"
	selectedScoredFormat = "Successfully scheduled resources for placement in %q (affinity score: %d, topology spread score: %d): picked by scheduling policy"
	notPickedFormat      = "Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)"
	notFoundFormat       = "Specified cluster %q is not found"
	notEligibleFormat    = "Cluster %q is not eligible for resource placement yet: %s"
	refusedPrefix        = "ClusterUnschedulable, "
)

// ReasonOf is the message for a cluster's outcome.
func ReasonOf(c framework.Choice) string {
	switch c.Result {
	case framework.Outscored:
		return fmt.Sprintf(notPickedFormat, c.Cluster, c.Score.Affinity, c.Score.Spread)
	case framework.Refused:
		return refusedPrefix + c.Reason
	case framework.Ineligible:
		return fmt.Sprintf(notEligibleFormat, c.Cluster, c.Reason)
	case framework.Outside:
		return c.Reason
	case framework.Unknown:
		return fmt.Sprintf(notFoundFormat, c.Cluster)
	}
	if c.Score == nil {
		return fmt.Sprintf(selectedFormat, c.Cluster)
	}
	return fmt.Sprintf(selectedScoredFormat, c.Cluster, c.Score.Affinity, c.Score.Spread)
}
