// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

const followedLog = prefix + "m1/proxy/api/v1/namespaces/shop/pods/web/log?follow=true"

// endlessLog writes lines until its caller disconnects. It reports how many bytes that took.
func endlessLog(ended chan<- int64) http.HandlerFunc {
	line := []byte(strings.Repeat("x", 1023) + "\n")
	return func(w http.ResponseWriter, r *http.Request) {
		var sent int64
		defer func() { ended <- sent }()
		for r.Context().Err() == nil {
			n, err := w.Write(line)
			sent += int64(n)
			if err != nil {
				return
			}
			if sent == int64(len(line)) {
				_ = http.NewResponseController(w).Flush()
			}
		}
	}
}

// withoutBuffers gives the caller small windows, so that a reader that stops soon stops the
// gateway.
func withoutBuffers(g *gateway) {
	transport := g.client.Transport.(*http.Transport)
	transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10}
}

// 520 stopped readers of followed logs took 2 GiB in the gateway.
func TestSlowReaders_EndsRepliesAboveLimitWithReason(t *testing.T) {
	const window, kept, stopped = 256 << 10, 4, 12
	for name, test := range map[string]struct {
		limits clustergateway.SlowReaders
		metric string
	}{
		"of one member":  {clustergateway.SlowReaders{PerMember: kept * window}, `{limit="member"}`},
		"of one user":    {clustergateway.SlowReaders{PerUser: kept * window}, `{limit="user"}`},
		"of the gateway": {clustergateway.SlowReaders{Total: kept * window}, `{limit="total"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			records := make(chan clustergateway.Record, 2*stopped)
			g, m := oneMember(t, func(c *apiserver.Config) {
				c.SlowReaders, c.Metrics = test.limits, registry
				c.Recorder = func(_ context.Context, r clustergateway.Record) { records <- r }
			})
			withoutBuffers(g)
			ended := make(chan int64, stopped+1)
			lines := make(chan string)
			m.serve(linesOf(lines))
			quick := g.do(http.MethodGet, followedLog, "jane", nil)
			wantLine(t, lines, quick.Body)
			m.serve(endlessLog(ended))
			var replies []*http.Response
			for range stopped {
				reply := g.do(http.MethodGet, followedLog, "jane", nil)
				wantCode(t, reply, http.StatusOK)
				replies = append(replies, reply)
			}
			for range stopped - kept {
				if sent := <-ended; sent > 4*window {
					t.Errorf("the gateway took %d bytes for a reader that had stopped", sent)
				}
			}
			wantLine(t, lines, quick.Body)
			want := "# HELP fleetgate_proxy_slow_readers_total Number of replies that the gateway ended because their readers were too slow, by the limit that was exceeded: member, user or total.\n" +
				"# TYPE fleetgate_proxy_slow_readers_total counter\n"
			for _, limit := range []string{`{limit="member"}`, `{limit="total"}`, `{limit="user"}`} {
				count := " 0\n"
				if limit == test.metric {
					count = " 8\n"
				}
				want += "fleetgate_proxy_slow_readers_total" + limit + count
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "fleetgate_proxy_slow_readers_total"); err != nil {
				t.Error(err)
			}
			wantReason(t, replies, records, stopped-kept)
		})
	}
}

// wantReason reads all replies, of which some were ended by the gateway.
func wantReason(t *testing.T, replies []*http.Response, records <-chan clustergateway.Record, want int) {
	t.Helper()
	const reason = "the reader was too slow, and the gateway buffers only a limited amount"
	ends := make(chan string)
	for _, reply := range replies {
		go func() {
			var last []byte
			for buffer := make([]byte, 64<<10); ; {
				n, err := reply.Body.Read(buffer)
				last = append(last, buffer[:n]...)
				if last = last[max(0, len(last)-1024):]; err != nil {
					ends <- string(last)
					return
				}
			}
		}()
	}
	for range want {
		if end := <-ends; !strings.HasSuffix(end, "\nfleetgate: this log of member \"m1\" continues, but this connection ends: "+reason+"\n") {
			t.Errorf("a reply ended with %q", end)
		}
		if record := <-records; record.Ended != reason {
			t.Errorf("a record says %q", record.Ended)
		}
	}
	for _, reply := range replies {
		_ = reply.Body.Close()
	}
	for range len(replies) - want {
		<-ends
	}
}

// linesOf writes the lines of the channel as they come.
func linesOf(lines <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case line := <-lines:
				_, _ = io.WriteString(w, line)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// wantLine fails unless a reader of linesOf gets the next line.
func wantLine(t *testing.T, lines chan<- string, reader io.Reader) {
	t.Helper()
	lines <- "line\n"
	got := make([]byte, 5)
	if _, err := io.ReadFull(reader, got); err != nil || string(got) != "line\n" {
		t.Errorf("a reader that keeps up got %q and error %v", got, err)
	}
}
