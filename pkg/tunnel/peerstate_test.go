// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinkReport_ReportsLinkThatStaysMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := 0
		r := &linkReport{address: "10.0.0.1:8092"}
		failFor := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				r.failed(t.Context(), func(string, error) { reported++ }, errors.New("blocked"))
			}
		}
		failFor(peerGrace - time.Second)
		r.established(t.Context())
		failFor(peerGrace - time.Second)
		if reported != 0 {
			t.Errorf("it reported %d restarts", reported)
		}
		failFor(time.Minute)
		if reported != 1 {
			t.Errorf("it reported %d times in a minute, want 1", reported)
		}
		failFor(peerReport)
		if reported != 2 {
			t.Errorf("it reported %d times, want a second one after %v", reported, peerReport)
		}
	})
}
