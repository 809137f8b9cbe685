// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// freezing is a member whose agent stops at a time.
type freezing struct {
	Liveness // No other method is called.
	at       time.Time
}

// Responds takes as long as a probe without a response if the agent has stopped.
func (f freezing) Responds(context.Context, string) bool {
	if time.Now().Before(f.at) {
		return true
	}
	time.Sleep(1500 * time.Millisecond)
	return false
}

// A replica that froze while a request waited held that request for up to ten seconds.
func TestProbe_AbortsRequestWithin3sWheneverAgentStops(t *testing.T) {
	for after := time.Duration(0); after < 20*time.Second; after += 300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			stops := time.Now().Add(after)
			probe := agentProbe{member: "m1", liveness: freezing{at: stops}}
			silent := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			})
			_, err := probe.roundTrip(silent, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
			if took := time.Since(stops); !errors.Is(err, errUnresponsive) || took > 3*time.Second {
				t.Errorf("agent stops after %v: got %v after another %v", after, err, took)
			}
		})
	}
}
