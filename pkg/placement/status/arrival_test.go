// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// A placement that is temporarily unavailable and recovers does not count twice.
func TestArrival_CountsEachChangeOnce(t *testing.T) {
	start := time.Unix(1_800_000_000, 500)
	arrival := NewArrival(start)
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
	says := func(status metav1.ConditionStatus, generation int64) {
		placement.Status.Conditions = []metav1.Condition{{
			Type: placement.ConditionType(placementv1beta1.ConditionAvailable), Status: status, ObservedGeneration: generation,
		}}
	}
	at := func(after time.Duration) time.Time { return start.Add(after) }
	for _, step := range []struct {
		what         string
		status       metav1.ConditionStatus
		generation   int64
		changed, now time.Duration
		count        uint64
		sum          float64
	}{
		{"from before this replica looked", "True", 2, -time.Minute, time.Second, 0, 0},
		{"not there yet", "False", 2, time.Second, 2 * time.Second, 0, 0},
		{"of another generation", "True", 1, time.Second, 3 * time.Second, 0, 0},
		{"there", "True", 2, time.Second, 5 * time.Second, 1, 4},
		{"away", "False", 2, time.Second, 6 * time.Second, 1, 4},
		{"there again", "True", 2, time.Second, 7 * time.Second, 1, 4},
		{"changed, and there at once", "True", 2, 8 * time.Second, 8 * time.Second, 2, 4},
		{"changed again", "True", 2, 10 * time.Second, 20 * time.Second, 3, 14},
	} {
		says(step.status, step.generation)
		arrival.observe(placement, at(step.changed), at(step.now))
		var written dto.Metric
		if err := arrival.seconds.Write(&written); err != nil {
			t.Fatal(err)
		}
		if h := written.GetHistogram(); h.GetSampleCount() != step.count || h.GetSampleSum() != step.sum {
			t.Errorf("%s: %d changes with %v seconds in total, want %d with %v", step.what, h.GetSampleCount(), h.GetSampleSum(), step.count, step.sum)
		}
	}
	arrival.forget(types.NamespacedName{Name: "web"})
	if len(arrival.last) != 0 {
		t.Error("deleted placement is still stored")
	}
}
