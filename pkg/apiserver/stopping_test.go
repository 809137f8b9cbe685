// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// kubectl printed only INTERNAL_ERROR when the gateway stopped under `logs --follow`.
func TestShutdown_EndsFollowedLogWithReason(t *testing.T) {
	for name, test := range map[string]struct{ path, sent, end string }{
		"a log":                   {"pods/web/log?follow=true", "one\ntwo\n", "fleetgate: this log of member \"m1\" continues, but this connection ends: the gateway is stopping\n"},
		"a log in a line":         {"pods/web/log?follow=true", "one\ntw", "\nfleetgate: this log of member \"m1\" continues, but this connection ends: the gateway is stopping\n"},
		"a watch between events":  {"pods?watch=true", "{\"type\":\"ADDED\"}\n", ""},
		"a watch within an event": {"pods?watch=true", "{\"type\":", "cut"},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := oneMember(t, func(c *apiserver.Config) { c.DrainTime = time.Millisecond })
			m.serve(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, test.sent)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			reply := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces/shop/"+test.path, "jane", nil)
			wantCode(t, reply, http.StatusOK)
			begun := make([]byte, len(test.sent))
			if _, err := io.ReadFull(reply.Body, begun); err != nil {
				t.Fatal(err)
			}
			g.stop()
			rest, err := io.ReadAll(reply.Body)
			if test.end == "cut" {
				if err == nil {
					t.Errorf("it ended after %q as if that were all", string(begun)+string(rest))
				}
			} else if err != nil || string(rest) != test.end {
				t.Errorf("got %q and error %v, want %q", rest, err, test.end)
			}
			g.awaitEnd()
		})
	}
}
