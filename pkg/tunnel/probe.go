// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Responds probes the member's agent in each of its sessions here. If there is none, it probes the
// gateways that have one. It is false if none responded within 1.5 s, or within four round trips if
// those take longer. Until a session or a gateway responds, dials skip it; a caller that keeps using
// an older connection waits. Streams continue if the peer recovers before its session is found to be
// broken. The result is true for members that cannot be reached, for sessions of protocols without
// probes, and for a session with so much queued data that the result would not be reliable.
func (r *Registry) Responds(ctx context.Context, member string) bool {
	var probing sync.WaitGroup
	var noResponse atomic.Int64
	sessions := 0
	for _, s := range r.paths(member) {
		sessions++
		if own, ok := s.(*nativeSession); ok {
			probing.Go(func() {
				if !own.Responds(ctx) {
					noResponse.Add(1)
				}
			})
		}
	}
	probing.Wait()
	if sessions == 0 || int(noResponse.Load()) < sessions {
		return true
	}
	// Older connections must not take further requests.
	r.sessionChanges.note(member, time.Now())
	return false
}

// paths are the sessions that dials to the member use: those here, or else the links to gateways
// that have one.
func (r *Registry) paths(member string) []Session {
	var paths []Session
	for _, s := range r.sessions(member) {
		if !r.isRetired(s) {
			paths = append(paths, s.Session)
		}
	}
	if len(paths) > 0 {
		return paths
	}
	for _, link := range r.peerLinks(member) {
		paths = append(paths, link.session)
	}
	return paths
}

// isUnresponsive is true if the session's agent did not respond to a probe and has sent nothing since.
func (s *session) isUnresponsive() bool {
	own, ok := s.Session.(*nativeSession)
	return ok && own.Unresponsive()
}

// probe checks whether the session below one connection still works. Other sessions of the member
// say nothing about that.
type probe struct {
	// session is nil if its protocol has no probes.
	session        *nativeSession
	member         string
	opened         time.Time
	sessionChanges *sessionChanges
}

// Responds is [Registry.Responds] for the session that carries this connection: the agent's, or the
// link to the gateway that has the agent's.
func (p probe) Responds(ctx context.Context) bool {
	if p.session == nil || p.session.Responds(ctx) {
		return true
	}
	// Once is enough: no new connection uses an unresponsive session.
	if !p.sessionChanges.last(p.member).After(p.opened) {
		p.sessionChanges.note(p.member, time.Now())
	}
	return false
}
