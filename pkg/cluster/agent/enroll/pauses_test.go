// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"testing"
	"time"
)

// A thousand agents that joined together got alternating errors from a busy hub: no answer yet, and
// too many requests. Each change reset the delay to 0.2 s, which kept the hub busy.
func TestPauses_GrowWhenTheReasonAlternates(t *testing.T) {
	p, total := pauses{}, time.Duration(0)
	for range 20 {
		total += p.next(RegistrationPending) + p.next(HubUnreachable)
	}
	if total < 2*time.Minute {
		t.Errorf("asked 40 times within %s", total)
	}
}

func TestPauses_AreShortForANewReason(t *testing.T) {
	p := pauses{}
	for range 20 {
		p.next(HubUnreachable)
	}
	if pause := p.next(RegistrationPending); pause > 2*firstRetry {
		t.Errorf("the first time that the hub has not answered yet is followed by %s", pause)
	}
}

func TestPauses_LimitTheDelayOfAPendingRegistration(t *testing.T) {
	p, longest := pauses{}, time.Duration(0)
	for range 50 {
		longest = max(longest, p.next(RegistrationPending))
	}
	const jitter = 1.2
	if longest > time.Duration(jitter*float64(pendingCap)) || longest < pendingCap {
		t.Errorf("the longest pause is %s, want about %s", longest, pendingCap)
	}
}
