// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// Options of a Registry; zero values are sane.
type Options struct {
	// MaxSessionsPerMember bounds the sessions of one member; 0 is 8.
	MaxSessionsPerMember int
	// MaxStreamsPerSession bounds the open streams of one session; 0 is 4096.
	MaxStreamsPerSession int
	// DialTimeout bounds a dial whose context has no earlier end; 0 is 10 s.
	DialTimeout time.Duration
	// Registerer takes the metrics; without one nothing is exported.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.MaxSessionsPerMember <= 0 {
		o.MaxSessionsPerMember = 8
	}
	if o.MaxStreamsPerSession <= 0 {
		o.MaxStreamsPerSession = defaultMaxStreams
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = 10 * time.Second
	}
	return o
}

// defaultMaxStreams bounds the streams of a session on either side.
const defaultMaxStreams = 4096

// Registry holds the tunnel sessions of this gateway. All methods may be called
// from any goroutine.
type Registry struct {
	options Options
	metrics *metrics
	carry   carry

	// mu guards the fields below it. It is never held while dialing or closing.
	mu sync.RWMutex
	// members holds each connected member's sessions, the newest first. The slices
	// are replaced, never changed: a dial walks one without the lock.
	members map[string][]*session
	closed  bool
	// serving counts the calls of Serve; it grows only while closed is false.
	serving sync.WaitGroup

	listeners listeners
}

// NewRegistry makes a registry without sessions. It fails when the metrics cannot
// be registered.
func NewRegistry(o Options) (*Registry, error) {
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	return &Registry{
		options: o,
		metrics: m,
		carry:   carryNative(native.Gateway, o.MaxStreamsPerSession),
		members: map[string][]*session{},
	}, nil
}

// Serve speaks the protocol with the member's agent on conn, which it owns, until
// the session ends. It returns nil when ctx or Close has ended it, and otherwise
// the reason: [ErrTooManySessions], [ErrClosed], or one that wraps
// [ErrSessionClosed]. The caller has made sure that the agent is the member's.
func (r *Registry) Serve(ctx context.Context, member string, conn net.Conn) (err error) {
	// The labels are inherited by the carrier's goroutines: a profile tells which
	// member they work for.
	pprof.Do(ctx, pprof.Labels("tunnel", "gateway", "member", member), func(ctx context.Context) {
		err = r.serve(ctx, member, conn)
	})
	if err != nil {
		return fmt.Errorf("serving the tunnel of member %q: %w", member, err)
	}
	return nil
}

func (r *Registry) serve(ctx context.Context, member string, conn net.Conn) error {
	if err := r.admits(member); err != nil {
		_ = conn.Close()
		return err
	}
	carrier, err := r.carry(ctx, conn)
	if err != nil {
		return err
	}
	defer carrier.Close()
	s := &session{member: member, carrier: carrier, max: int64(r.options.MaxStreamsPerSession), meter: r.metrics.of(member)}
	if err := r.add(s); err != nil {
		return err
	}
	defer r.serving.Done()
	defer r.remove(s)
	err = s.watch(ctx)
	if ctx.Err() != nil || r.isClosed() {
		return nil
	}
	return err
}

// admits says whether the member may have one more session: ErrTooManySessions or
// ErrClosed if not.
func (r *Registry) admits(member string) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.admitsLocked(member)
}

func (r *Registry) admitsLocked(member string) error {
	if r.closed {
		return ErrClosed
	}
	if n := len(r.members[member]); n >= r.options.MaxSessionsPerMember {
		return fmt.Errorf("%w: it has %d", ErrTooManySessions, n)
	}
	return nil
}

func (r *Registry) add(s *session) error {
	r.mu.Lock()
	if err := r.admitsLocked(s.member); err != nil {
		r.mu.Unlock()
		return err
	}
	r.members[s.member] = append([]*session{s}, r.members[s.member]...)
	r.serving.Add(1)
	r.mu.Unlock()
	s.meter.sessions.Inc()
	r.listeners.tell(s.member, r.Connected)
	return nil
}

func (r *Registry) remove(s *session) {
	r.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(r.members[s.member]), func(other *session) bool { return other == s })
	if len(rest) == 0 {
		delete(r.members, s.member)
	} else {
		r.members[s.member] = rest
	}
	r.mu.Unlock()
	s.meter.sessions.Dec()
	r.listeners.tell(s.member, r.Connected)
}

// DialMember opens a connection to a target of the member, such as [APIServer]. It
// returns when the agent has reached the target, and otherwise
//
//   - at once with [ErrNotConnected] when the member has no session here,
//   - a [RefusedError] with the agent's reason,
//   - the cause of ctx, or context.DeadlineExceeded after Options.DialTimeout.
//
// The connection outlives ctx. It is a net.Conn that also has CloseWrite and Reset.
func (r *Registry) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	if err := validTarget(target); err != nil {
		return nil, err
	}
	conn, err := r.dial(ctx, member, target)
	r.metrics.dialed(member, err)
	if err != nil {
		return nil, fmt.Errorf("dialing %s of member %q: %w", target, member, err)
	}
	return conn, nil
}

// dial tries the member's sessions, the newest first. An agent's refusal counts for
// all of them, unless that session alone is busy.
func (r *Registry) dial(ctx context.Context, member, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
	defer cancel()
	var last error
	for _, s := range r.sessions(member) {
		conn, err := s.dial(ctx, target)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || isFinal(err) {
			return nil, err
		}
		last = err
	}
	if last == nil {
		return nil, ErrNotConnected
	}
	if errors.Is(last, ErrSessionClosed) {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, last)
	}
	return nil, last
}

// isFinal says that another session would give the same answer.
func isFinal(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && refused.Code != Busy
}

// Connected says whether the member has a session here.
func (r *Registry) Connected(member string) bool { return len(r.sessions(member)) > 0 }

func (r *Registry) sessions(member string) []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return nil
	}
	return r.members[member]
}

// Subscribe has changed called when a member gets its first session or loses its
// last, and once now for every member that is connected. Calls come one at a time,
// from the goroutines of sessions: changed must not block. Unsubscribing ends them,
// and waits for one that is under way.
func (r *Registry) Subscribe(changed func(member string, connected bool)) (unsubscribe func()) {
	return r.listeners.add(changed)
}

// Disconnect ends the member's sessions and forgets its metrics: for a member that
// has left the fleet or whose agent's identity was revoked. An agent that may still
// come in will.
func (r *Registry) Disconnect(member string) {
	for _, s := range r.sessions(member) {
		_ = s.carrier.Close()
	}
	r.metrics.forget(member)
}

// Close refuses new sessions and dials from now on, waits until the open streams
// have ended or ctx does, and then ends all sessions. It returns when every Serve
// has.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	var all []*session
	for _, sessions := range r.members {
		all = append(all, sessions...)
	}
	r.mu.Unlock()
	drain(ctx, all)
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() { _ = s.carrier.Close() })
	}
	closing.Wait()
	r.serving.Wait()
	return nil
}

// drainPoll is how often Close looks whether the last stream has ended.
const drainPoll = 50 * time.Millisecond

func drain(ctx context.Context, sessions []*session) {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for slices.ContainsFunc(sessions, func(s *session) bool { return s.open.Load() > 0 }) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Registry) isClosed() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.closed
}
