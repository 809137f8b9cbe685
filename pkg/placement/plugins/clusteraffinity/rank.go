// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteraffinity

import (
	"math"

	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Ranker implements framework.Ranker: a cluster gets the weights of the preferences that it
// matches. A preference that sorts by a property gives its full weight to the cluster at one end,
// nothing at the other, and a rounded share in between. The ends are those of all clusters of the
// fleet, including clusters that cannot be picked. If all values are equal, or a cluster does not
// report the property, it gets nothing.
type Ranker struct{}

var _ framework.Ranker = Ranker{}

// Rank implements framework.Ranker.
func (Ranker) Rank(policy *framework.Policy, fleet *framework.Fleet) func(*framework.Cluster) int32 {
	weights := make([]weight, 0, len(policy.Preferred))
	for i := range policy.Preferred {
		w := weight{Preference: &policy.Preferred[i]}
		if w.SortBy != "" {
			w.findEnds(fleet)
		}
		weights = append(weights, w)
	}
	return func(cluster *framework.Cluster) int32 {
		var sum int32
		for i := range weights {
			sum += weights[i].of(cluster)
		}
		return sum
	}
}

// weight is a preference with the ends of its property's values.
type weight struct {
	*framework.Preference
	smallest, largest float64
}

func (w *weight) findEnds(fleet *framework.Fleet) {
	w.smallest, w.largest = math.Inf(1), math.Inf(-1)
	for i := range fleet.Clusters {
		if value, ok := number(fleet.Clusters[i].Properties[w.SortBy]); ok {
			w.smallest, w.largest = min(w.smallest, value), max(w.largest, value)
		}
	}
}

func (w *weight) of(cluster *framework.Cluster) int32 {
	if w.Labels != nil && !w.Labels.Matches(labels.Set(cluster.Labels)) {
		return 0
	}
	if w.SortBy == "" {
		return w.Weight
	}
	value, ok := number(cluster.Properties[w.SortBy])
	if !ok || w.smallest >= w.largest {
		return 0
	}
	share := (value - w.smallest) / (w.largest - w.smallest)
	if w.Ascending {
		share = 1 - share
	}
	return int32(math.Round(share * float64(w.Weight)))
}

func number(text string) (float64, bool) {
	if text == "" {
		return 0, false
	}
	quantity, err := untrusted.Quantity(text)
	if err != nil {
		return 0, false
	}
	value := quantity.AsApproximateFloat64()
	return value, !math.IsInf(value, 0)
}
