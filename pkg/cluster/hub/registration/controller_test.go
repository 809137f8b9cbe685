// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPreparing_EndsDespiteClockSkew(t *testing.T) {
	made := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"just created":    {made, preparation},
		"half way":        {made.Add(preparation / 2), preparation / 2},
		"at its end":      {made.Add(preparation), 0},
		"long ago":        {made.Add(preparation + time.Hour), -time.Hour},
		"clock far ahead": {made.Add(-time.Hour), preparation},
	} {
		got := preparing(clocktesting.NewFakePassiveClock(tc.now), &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)})
		if got != tc.want {
			t.Errorf("%s: preparing() = %s, want %s", name, got, tc.want)
		}
	}
}
