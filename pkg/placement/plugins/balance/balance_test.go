// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestTheFormula(t *testing.T) {
	for _, tc := range []struct {
		decided, most int
		want          int64
	}{
		{0, 0, 100}, {0, 10, 100},
		{10, 10, -100}, {5, 10, 0}, {1, 10, 80}, {3, 10, 40},
		// 100 x (0.5 - 1/3) is 16.6, of which 16 is doubled; negative values are truncated towards
		// 0 as well.
		{1, 3, 32}, {2, 3, -32},
		// The largest may belong to a cluster that is no candidate.
		{1, 1, -100}, {1, 4, 50},
	} {
		cluster := &framework.Cluster{Decided: tc.decided}
		score := Scorer{}.Score(nil, &framework.Fleet{MostDecided: tc.most}, []*framework.Cluster{cluster})
		if got := score(cluster); got != tc.want {
			t.Errorf("%d of %d: %d, want %d", tc.decided, tc.most, got, tc.want)
		}
	}
}
