// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Answers asks the member's agent for a sign of life in each of its sessions here, and reports
// false if it gave none in any within 1.5 s, or four round trips where those are longer. Until
// it gives one, dials pass over these sessions: whoever goes on to use a connection of before
// waits. What is under way in them goes on with the agent, if that is before the session is
// found to be broken. Of members without a session here, of sessions of protocols that cannot
// ask, and of one that has so much to carry that nobody can tell, nothing bad is thought.
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
	// Connections of before are not used for further requests.
	r.departures.note(member, time.Now())
	return false
}

// silent says that the session's agent was asked for a sign of life, and gave none since.
func (s *session) silent() bool {
	own, ok := s.Session.(*nativeSession)
	return ok && own.Silent()
}
