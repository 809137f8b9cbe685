// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime/metrics"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Seven users who began to watch a thousand members each kept the login of others waiting for 19 s.
func TestFanout_SendsFewRequestsWhileGatewayIsBusy(t *testing.T) {
	const members = 100
	for name, c := range map[string]struct {
		busy    bool
		members int
		want    time.Duration
	}{
		"all at once while it is not busy":  {members: members},
		"one at a time while it is busy":    {busy: true, members: members, want: members * paceMost},
		"a few members at once in any case": {busy: true, members: wide},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last atomic.Int64
				began := time.Now()
				h := New(Config{Busy: func() bool { return c.busy }, Gateway: fakeGateway{member: func(http.ResponseWriter, *http.Request) {
					last.Store(int64(time.Since(began)))
				}}})
				var before time.Duration
				// The second request is of another caller.
				for range 2 {
					f := h.newFanout(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), "all", DefaultDeadline)
					f.send(t.Context(), slices.Repeat([]memberRequest{{member: "a", url: &url.URL{}}}, c.members))
					f.group.Wait()
					if took := time.Duration(last.Load()) - before; took != c.want {
						t.Errorf("the last member got its request after %v, want %v", took, c.want)
					}
					before = time.Since(began)
				}
			})
		})
	}
}

func TestPace_EndsWithItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(func() bool { return true })
		first, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.await(first); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := p.await(t.Context()); err != nil {
			t.Errorf("the next request got %v", err)
		}
	})
}

func TestIsBusy_ReadsMetricOfRuntime(t *testing.T) {
	if !slices.ContainsFunc(metrics.All(), func(m metrics.Description) bool { return m.Name == runnable && m.Kind == metrics.KindUint64 }) {
		t.Errorf("the runtime has no metric %s", runnable)
	}
}
