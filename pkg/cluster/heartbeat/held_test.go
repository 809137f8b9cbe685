// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestWhatIsHeldIsReportedOnceItLastsAndItsEndOnlyIfItWas(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	held := NewHeld("member-1", clock)
	woken := func() bool {
		select {
		case <-held.changed:
			return true
		default:
			return false
		}
	}
	imc := &clusterv1beta1.InternalMemberCluster{}
	says := func() string {
		imc.Status = joinedReport(imc, facts{held: held.condition()}, clock.Now())
		for _, c := range imc.Status.Conditions {
			if c.Type == clusterv1beta1.ConditionPlacementsHeld {
				return string(c.Status) + " " + c.Reason + " " + c.Message
			}
		}
		return ""
	}
	if got := says(); got != "" || held.condition() != nil {
		t.Errorf("before anything is known: %q", got)
	}
	held.Set(2, 3, "shop-work")
	if woken() {
		t.Error("it is reported before it lasted")
	}
	clock.Step(heldSettles)
	if !woken() {
		t.Error("it is not reported")
	}
	if got := says(); !strings.HasPrefix(got, "True HubWentBack") || !strings.Contains(got, `3 objects of 2 Works, one of them "shop-work"`) ||
		!strings.Contains(got, "kubectl annotate membercluster member-1 --overwrite fleetgate.io/let-go=") {
		t.Errorf("while something is held: %q", got)
	}
	held.Set(0, 0, "")
	if got := says(); !strings.HasPrefix(got, "False NothingHeld") {
		t.Errorf("afterwards: %q", got)
	}
	imc.Status.Conditions = nil
	if got := says(); got != "" {
		t.Errorf("where nothing was ever held: %q", got)
	}
}

func TestAStartThatFindsNothingHeldEndsWhatWasReported(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	held := NewHeld("member-1", clock)
	clock.Step(heldUnknown)
	if c := held.condition(); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("after a while it says %v", c)
	}
}

func TestAHubThatCountsFromAnEarlierNumberWentBack(t *testing.T) {
	cases := map[string]struct {
		versions []string
		back     int
	}{
		"one that goes on":         {[]string{"7", "8", "12", "100"}, 0},
		"one that was restored":    {[]string{"100", "99", "101"}, 1},
		"a write that was none":    {[]string{"7", "7"}, 0},
		"no numbers":               {[]string{"b", "a", ""}, 0},
		"restored again and again": {[]string{"9", "3", "2"}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			back := 0
			r := &Reconciler{WentBack: func() { back++ }}
			for _, version := range tc.versions {
				r.lookBack(t.Context(), version)
			}
			if back != tc.back {
				t.Errorf("it went back %d times, want %d", back, tc.back)
			}
		})
	}
}
