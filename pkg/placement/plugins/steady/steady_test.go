// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestScore_PrefersHolders(t *testing.T) {
	score := Scorer{}.Score(&framework.Policy{Current: sets.New("a")}, nil, nil)
	if got := score(&framework.Cluster{Name: "a"}); got != 100 {
		t.Errorf("a cluster that has it is given %d, want 100", got)
	}
	if got := score(&framework.Cluster{Name: "b"}); got != 0 {
		t.Errorf("a cluster that has it not is given %d, want 0", got)
	}
}
