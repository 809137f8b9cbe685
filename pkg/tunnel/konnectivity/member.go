// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// memberAgents are all streams of a member's agents, from the first one to the loss of the last. A
// registry sees them as one session. They are chosen for a dial here, by their load.
type memberAgents struct {
	server *AgentServer
	member string
	// done is closed when the last stream has ended, or Close was called.
	done chan struct{}

	// The server's mu guards the following fields. The slice, the newest session first, is
	// replaced, never changed.
	sessions []*session
	ended    bool
}

var _ tunnel.Session = (*memberAgents)(nil)

// Dial opens a connection to a target of the member.
func (m *memberAgents) Dial(ctx context.Context, target string) (net.Conn, error) {
	return m.server.dialOver(ctx, m.all(), target)
}

func (m *memberAgents) all() []*session {
	m.server.mu.RLock()
	defer m.server.mu.RUnlock()
	return m.sessions
}

// Drain prefers other agents where there are any, and asks ours to reconnect.
func (m *memberAgents) Drain() {
	for _, s := range m.all() {
		s.retire()
	}
}

// Draining is nil: a draining agent is used while there is no other.
func (m *memberAgents) Draining() <-chan struct{} { return nil }

// Done is closed when the last stream has ended, or Close was called.
func (m *memberAgents) Done() <-chan struct{} { return m.done }

// Err returns an error once the agents have disconnected.
func (m *memberAgents) Err() error {
	if !isClosed(m.done) {
		return nil
	}
	return fmt.Errorf("%w: the member's Konnectivity agents have left", tunnel.ErrSessionClosed)
}

// Close ends all streams, and does not wait for that. An agent that reconnects starts a new
// session.
func (m *memberAgents) Close() error {
	m.server.mu.Lock()
	m.endLocked()
	sessions := m.sessions
	m.server.mu.Unlock()
	for _, s := range sessions {
		s.retired.Store(true)
		s.end()
	}
	return nil
}

func (m *memberAgents) endLocked() {
	if m.ended {
		return
	}
	m.ended = true
	close(m.done)
	delete(m.server.members, m.member)
}

// add adds a stream to its member's, until remove.
func (a *AgentServer) add(s *session) (*memberAgents, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	agents := a.members[s.member]
	switch {
	case a.closed:
		return nil, status.Error(codes.Unavailable, tunnel.ErrClosed.Error())
	case agents != nil && len(agents.sessions) >= a.options.MaxSessions:
		return nil, status.Error(codes.ResourceExhausted, tunnel.ErrTooManySessions.Error())
	}
	if agents == nil {
		agents = &memberAgents{server: a, member: s.member, done: make(chan struct{})}
		a.members[s.member] = agents
		a.joined.Go(func() { a.join(context.WithoutCancel(s.stream.Context()), agents) })
	}
	s.streamIndex = leastUsedIndex(agents.sessions, s.agent.id, a.options.StreamsPerAgent)
	agents.sessions = append([]*session{s}, agents.sessions...)
	a.options.Metrics.backends(1)
	return agents, nil
}

// join registers the member's agents until they have disconnected.
func (a *AgentServer) join(ctx context.Context, agents *memberAgents) {
	err := a.options.Join(ctx, agents.member, agents)
	if err != nil && !errors.Is(err, tunnel.ErrSessionClosed) {
		klog.FromContext(ctx).Info("Could not register Konnectivity agents", "member", agents.member, "reason", err.Error())
	}
}

func (a *AgentServer) remove(agents *memberAgents, s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	agents.sessions = slices.DeleteFunc(slices.Clone(agents.sessions), func(other *session) bool { return other == s })
	if len(agents.sessions) == 0 {
		agents.endLocked()
	}
	a.options.Metrics.backends(-1)
}

// leastUsedIndex returns the index with the fewest streams of this agent, so that each of its streams
// gets a different one until all are used.
func leastUsedIndex(sessions []*session, agent string, streams int) int {
	used := make([]int, streams)
	for _, s := range sessions {
		if s.agent.id == agent && !s.retired.Load() {
			used[s.streamIndex]++
		}
	}
	return slices.Index(used, slices.Min(used))
}

// Disconnect ends the member's streams and drops its metrics, for a member that has left the fleet.
func (a *AgentServer) Disconnect(member string) {
	a.mu.RLock()
	agents := a.members[member]
	a.mu.RUnlock()
	if agents != nil {
		_ = agents.Close()
	}
	a.options.Metrics.forget(member)
}
