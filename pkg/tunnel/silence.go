// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Answers probes the member's agent in each of its sessions here. It is false if none responded
// within 1.5 s, or within four round trips if those take longer. Until a session responds, dials
// skip it; a caller that keeps using an older connection waits. Streams in the session continue if
// the agent recovers before the session is found to be broken. The result is true for members
// without a session here, for sessions of protocols without probes, and for a session with so much
// queued data that the result would not be reliable.
func (r *Registry) Answers(ctx context.Context, member string) bool {
	var asking sync.WaitGroup
	var silent atomic.Int64
	asked := 0
	for _, s := range r.sessions(member) {
		if r.isRetired(s) {
			continue
		}
		asked++
		if own, ok := s.Session.(*nativeSession); ok {
			asking.Go(func() {
				if !own.Answers(ctx) {
					silent.Add(1)
				}
			})
		}
	}
	asking.Wait()
	if asked == 0 || int(silent.Load()) < asked {
		return true
	}
	// Older connections must not take further requests.
	r.departures.note(member, time.Now())
	return false
}

// silent is true if the session's agent did not respond to a probe and has sent nothing since.
func (s *session) silent() bool {
	own, ok := s.Session.(*nativeSession)
	return ok && own.Silent()
}
