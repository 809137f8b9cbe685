// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import "fmt"

// worded writes sentences about a decision's choices, as a caller would, to make the tables
// readable.
func worded(d Decision) Decision {
	for _, choices := range [][]Choice{d.Selected, d.Unselected} {
		for i := range choices {
			choices[i] = sentence(choices[i])
		}
	}
	return d
}

// Selected is the sentence about a picked cluster.
func Selected(cluster string, score *Score) Choice {
	return sentence(Choice{Cluster: cluster, Score: score})
}

func sentence(c Choice) Choice {
	switch c.Result {
	case Picked:
		c.Reason = fmt.Sprintf("%q is picked", c.Cluster)
	case Outscored:
		c.Reason = fmt.Sprintf("Cluster %q does not score high enough (affinity score: %d, topology spread score: %d)", c.Cluster, c.Score.Affinity, c.Score.Spread)
	case Refused:
		c.Reason = "ClusterUnschedulable, " + c.Reason
	case Ineligible:
		c.Reason = fmt.Sprintf("Cluster %q is not eligible for resource placement yet: %s", c.Cluster, c.Reason)
	case Unknown:
		c.Reason = fmt.Sprintf("Specified cluster %q is not found", c.Cluster)
	case Outside:
		c.Reason = fmt.Sprintf("%q is out of bounds", c.Cluster)
	}
	c.Result = 0
	return c
}
