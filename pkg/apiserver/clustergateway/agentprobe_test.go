// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"io"
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

// stalled is the body of a reply that stops in its middle. The function returns when the request ends.
type stalled func() error

func (s stalled) Read([]byte) (int, error) { return 0, s() }
func (stalled) Close() error               { return nil }

func stalledFor(ctx context.Context) stalled {
	return func() error {
		<-ctx.Done()
		return ctx.Err()
	}
}

// A replica that froze while a request waited held that request for up to ten seconds, and for half a minute
// in the middle of a reply.
func TestProbe_AbortsRequestWithin3sWheneverAgentStops(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	begun := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: stalledFor(r.Context())}, nil
	}
	for name, member := range map[string]roundTripperFunc{"before its reply": silent, "in the middle of its reply": begun} {
		for after := time.Duration(0); after < 20*time.Second; after += 300 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				stops := time.Now().Add(after)
				probe := agentProbe{member: "m1", liveness: freezing{at: stops}}
				x := &exchange{request: &Request{}}
				res, err := probe.roundTrip(member, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), x)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					if err != nil && x.cut.Load() != nil {
						err = *x.cut.Load()
					}
				}
				if took := time.Since(stops); !errors.Is(err, errUnresponsive) || took > 3*time.Second {
					t.Errorf("agent stops after %v, %s: got %v after another %v", after, name, err, took)
				}
			})
		}
	}
}

// A watch and a followed log continue if the agent recovers before its tunnel is found to be broken.
func TestProbe_DoesNotAbortLongRunningReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		probe := agentProbe{member: "m1", liveness: freezing{at: time.Now()}}
		x := &exchange{request: &Request{LongRunning: true}}
		begun := roundTripperFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: stalledFor(r.Context())}, nil
		})
		began := time.Now()
		res, err := probe.roundTrip(begun, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), x)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err = io.ReadAll(res.Body); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
