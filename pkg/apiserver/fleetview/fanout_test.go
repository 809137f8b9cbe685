// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// fakeGateway leads to members whose API server does what the function does.
type fakeGateway struct {
	Gateway // Of the rest nothing is asked.
	member  http.HandlerFunc
}

// ServeMember answers for every member.
func (g fakeGateway) ServeMember(w http.ResponseWriter, r *http.Request, _, _ string, _ *url.URL) {
	g.member(w, r)
}

// atOnce is how many of them are asked at once.
const atOnce = 3

// fanoutOver asks members that all do the same.
func fanoutOver(t *testing.T, does http.HandlerFunc) *fanout {
	h := New(Config{Parallel: atOnce, Gateway: fakeGateway{member: does}})
	return h.newFanout(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), "all", DefaultDeadline)
}

func TestAReplyThatStopsInTheMiddleIsBrokenOff(t *testing.T) {
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
				_, err := io.ReadAll(f.ask(t.Context(), []question{{member: "a", url: &url.URL{}}})[0])
				if took := time.Since(began); !errors.Is(err, errStalled) || took != c.want {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
}

// Who reads slowly is no reason to break off what a member has to say.
func TestAReplyThatIsReadSlowlyIsNotBrokenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 100
		f := fanoutOver(t, func(w http.ResponseWriter, _ *http.Request) {
			for range pieces {
				_, _ = io.WriteString(w, "x")
			}
		})
		defer f.close()
		reply := f.ask(t.Context(), []question{{member: "a", url: &url.URL{}}})[0]
		for range pieces {
			time.Sleep(stalledAfter)
			if _, err := reply.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
