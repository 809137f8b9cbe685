// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeGateway is a gateway whose members all use this handler. The host of a request is its member.
type fakeGateway struct {
	Gateway // No other method is called.
	member  http.HandlerFunc
}

func (g fakeGateway) ServeMember(w http.ResponseWriter, r *http.Request, _, member string, inner *url.URL) {
	r.URL, r.Host = inner, member
	g.member(w, r)
}

// atOnce is how many of them get a request at once.
const atOnce = 3

// fanoutOver sends requests to members that all use the same handler.
func fanoutOver(t *testing.T, does http.HandlerFunc) *fanout {
	h := New(Config{Parallel: atOnce, Gateway: fakeGateway{member: does}})
	return h.newFanout(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), "all", DefaultDeadline)
}

// A panic in a request to a member ends that request, not the gateway.
func TestFanout_PanicEndsOnlyTheReplyOfItsMember(t *testing.T) {
	f := fanoutOver(t, func(http.ResponseWriter, *http.Request) { panic("a defect") })
	defer f.close()
	reply := f.send(t.Context(), []memberRequest{{member: "a", url: &url.URL{}}})[0]
	<-reply.begun
	if reply.err == nil || reply.code != http.StatusBadGateway {
		t.Errorf("got %d, %v", reply.code, reply.err)
	}
}

func TestFanout_AbortsReplyThatStalls(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		want  time.Duration
	}{
		"for good":                  {pause: time.Hour, want: stalledAfter},
		"again and again, a little": {pause: stalledAfter / 2, want: maxWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fanoutOver(t, func(w http.ResponseWriter, r *http.Request) {
					for {
						_, _ = io.WriteString(w, "[")
						select {
						case <-time.After(c.pause):
						case <-r.Context().Done():
							return
						}
					}
				})
				defer f.close()
				began := time.Now()
				_, err := io.ReadAll(f.send(t.Context(), []memberRequest{{member: "a", url: &url.URL{}}})[0])
				if took := time.Since(began); !errors.Is(err, errStalled) || took != c.want {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}

// A slow reader is no reason to abort a member's reply.
func TestFanout_KeepsReplyThatIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 100
		f := fanoutOver(t, func(w http.ResponseWriter, _ *http.Request) {
			for range pieces {
				_, _ = io.WriteString(w, "x")
			}
		})
		defer f.close()
		reply := f.send(t.Context(), []memberRequest{{member: "a", url: &url.URL{}}})[0]
		for range pieces {
			time.Sleep(stalledAfter)
			if _, err := reply.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The fan-out sends requests to a few of many members at a time. A member with a long reply keeps
// its slot until the end; one that does not reply loses it.
func TestFanout_LimitsRequestsInFlight(t *testing.T) {
	const members, tick = 4 * atOnce, slotFor / 2
	for name, c := range map[string]struct {
		before, after time.Duration
		large         bool
		want          int
	}{
		"until they have replied":        {before: tick, after: time.Hour, want: atOnce},
		"until their reply was read":     {before: tick, after: time.Hour, large: true, want: atOnce},
		"except for those without reply": {before: time.Hour, large: true, want: members},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most := 0, 0
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					now += n
					most = max(most, now)
				}
				f := fanoutOver(t, func(w http.ResponseWriter, _ *http.Request) {
					count(1)
					time.Sleep(c.before)
					if !c.large {
						count(-1)
					}
					w.WriteHeader(http.StatusOK)
					time.Sleep(c.after)
					if c.large {
						count(-1)
					}
				})
				for range members {
					f.start(t.Context(), memberRequest{member: "a", url: &url.URL{}, large: c.large, deadline: 24 * time.Hour})
				}
				f.group.Wait()
				if most != c.want {
					t.Errorf("got %d at once, want %d", most, c.want)
				}
			})
		})
	}
}
