// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readerOf starts a reader of a member and returns its messages.
func readerOf(t *testing.T, version string, reachable func() bool, member http.HandlerFunc) <-chan memberEvent {
	t.Helper()
	f, events := fanoutOver(t, member), make(chan memberEvent)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		f.close()
	})
	r := &reader{
		request: memberRequest{member: "a", url: &url.URL{}}, fanout: f, events: events, version: version,
		reachable: func(context.Context, string) bool { return reachable() },
	}
	r.start(ctx)
	return events
}

func always() bool { return true }

func describe(m memberEvent) string {
	switch {
	case m.began != nil:
		return fmt.Sprint("replied with ", m.began.code)
	case m.compacted:
		return "compacted"
	case m.listing > 0:
		return "list"
	case m.listing < 0 && m.listed:
		return "end of list at " + m.version
	case m.listing < 0:
		return "list broke off"
	case m.event != nil:
		return m.event.Type + " " + m.event.Name + " at " + m.version
	}
	return "at " + m.version
}

const (
	listAt5   = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"one"}}]}`
	addedAt6  = `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"two","resourceVersion":"6"}}}`
	markedAt7 = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}`
	goneEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"code":410}}`
)

// member serves lists and watches by their resourceVersion; a watch continues after its text.
func member(list string, watches map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, list)
			return
		}
		text, ok := watches[r.URL.Query().Get("resourceVersion")]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, text)
		<-r.Context().Done()
	}
}

func TestReader_ReportsMember(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		member  http.HandlerFunc
		want    []string
	}{
		"lists a new member, then watches it": {
			member: member(listAt5, map[string]string{"5": addedAt6 + markedAt7}),
			want:   []string{"replied with 200", "list", "ADDED one at ", "end of list at 5", "ADDED two at 6", "at 7"},
		},
		"resumes at its version": {
			version: "5",
			member:  member("", map[string]string{"5": addedAt6}),
			want:    []string{"replied with 200", "ADDED two at 6"},
		},
		"lists again after compaction": {
			version: "3",
			member:  member(listAt5, map[string]string{"3": goneEvent, "5": addedAt6}),
			want:    []string{"replied with 200", "compacted", "list", "ADDED one at ", "end of list at 5", "ADDED two at 6"},
		},
		"sends nothing of a list before the watch is accepted": {
			member: member(listAt5, nil),
			want:   []string{"replied with 403"},
		},
		"reports a list that breaks off": {
			member: member(listAt5[:len(listAt5)-2], map[string]string{"5": addedAt6}),
			want:   []string{"replied with 200", "list", "ADDED one at ", "list broke off", "list", "ADDED one at ", "list broke off"},
		},
		"reports a reply that is no list": {
			member: member("[]", nil),
			want:   []string{"replied with 502"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := readerOf(t, c.version, always, c.member)
				var got []string
				for range c.want {
					got = append(got, describe(<-events))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestReader_SendsNoRequestAfterAccessIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const allowed = 3
		var requests atomic.Int64
		events := readerOf(t, "5", func() bool { return requests.Load() < allowed }, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(http.StatusOK)
		})
		for later := time.After(time.Hour); ; {
			select {
			case <-events:
				continue
			case <-later:
			}
			break
		}
		if requests.Load() != allowed {
			t.Errorf("the member got %d requests, want %d", requests.Load(), allowed)
		}
	})
}
