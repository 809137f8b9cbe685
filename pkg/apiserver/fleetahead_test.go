// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/apiserver"
)

// dripping sends its list in pieces with pauses, as a member on a slow link.
func dripping(pieces int, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[`)
		for n := range pieces {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
			if n > 0 {
				_, _ = io.WriteString(w, ",")
			}
			fmt.Fprintf(w, `{"metadata":{"name":"pod-%d"}}`, n)
		}
		_, _ = io.WriteString(w, "]}")
	}
}

// Lists of many members on slow links were cut after the time limit of other requests, although
// they made progress.
func TestFleetview_ListInProgressHasNoTimeLimit(t *testing.T) {
	const limit, pieces = 300 * time.Millisecond, 8
	for _, query := range []string{"", "&stream=true", "&limit=100"} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			members := map[string]*member{"a": newMember(t, dripping(pieces, limit/2)), "b": newMember(t, dripping(pieces, limit/2))}
			g := newGateway(t, members, func(c *apiserver.Config) { c.RequestTimeout = limit })
			if got := rows(t, g.do(http.MethodGet, podsOfAll+"?memberTimeoutSeconds=20"+query, "u", nil)); len(got) != 2*pieces {
				t.Errorf("got %v", got)
			}
		})
	}
}

// While the list of one member is written, the following ones are read: a member whose list is larger
// than a window can end its reply before its turn.
func TestFleetview_ReadsNextMembersAhead(t *testing.T) {
	ended := make(chan struct{})
	large := listingOf(100, 3000) // Several windows.
	first := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[`)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
			_, _ = io.WriteString(w, `{"metadata":{"name":"x"}}]}`)
		case <-r.Context().Done():
		}
	}
	members := map[string]*member{"a": newMember(t, http.HandlerFunc(first))}
	var left atomic.Int32
	for n := range 10 {
		left.Add(1)
		members[fmt.Sprint("b", n)] = newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			large(w, r)
			if left.Add(-1) == 0 {
				close(ended)
			}
		}))
	}
	g := newGateway(t, members)
	if got := rows(t, g.do(http.MethodGet, podsOfAll+"?memberTimeoutSeconds=30", "u", nil)); len(got) != 1001 || got[0] != "a/x" {
		t.Errorf("got %d rows", len(got))
	}
}

// API servers end the replies to lists that are not read within a minute. Such a member is asked
// again when its turn comes.
func TestFleetview_RepeatsRequestOfReplyThatBreaksOffBeforeItsTurn(t *testing.T) {
	var asked atomic.Int32
	after := pods("y")
	broken := func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"old`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		after(w, r)
	}
	flowing := strings.Repeat("x", 5<<20) // More than the gateway holds back for the sake of headers.
	before := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"x"},"spec":%q}]}`, flowing)
	}
	g := newGateway(t, map[string]*member{"a": newMember(t, http.HandlerFunc(before)), "b": newMember(t, http.HandlerFunc(broken))})
	if got := rows(t, g.do(http.MethodGet, podsOfAll, "u", nil)); !slices.Equal(got, []string{"a/x", "b/y"}) {
		t.Errorf("got %v", got)
	}
}
