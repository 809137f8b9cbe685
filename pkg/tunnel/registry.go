// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// Options of a Registry; zero values are sane.
type Options struct {
	// MaxSessionsPerMember limits the sessions of one member; 0 is 8.
	MaxSessionsPerMember int
	// MaxStreamsPerSession limits the open streams of one session; 0 is 4096.
	MaxStreamsPerSession int
	// DialTimeout limits a dial whose context has no earlier deadline; 0 is 10 s.
	DialTimeout time.Duration
	// Unread limits the unread bytes of all streams together; 0 is 512 MiB. Beyond it, streams with
	// much unread data are reset.
	Unread int64
	// DataConnections uses data connections for streams to API servers, with agents that do so too.
	DataConnections bool
	// Info is sent to agents at the beginning of a session; nil sends nothing. See SendInfoAll.
	Info func() Info
	// Registerer registers the metrics. If nil, there are none.
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
	if o.Unread <= 0 {
		o.Unread = defaultUnread
	}
	return o
}

const (
	// defaultMaxStreams limits the streams of a session on either side.
	defaultMaxStreams = 4096
	// defaultUnread limits the unread data of all streams of a process.
	defaultUnread = 512 << 20
)

// Registry holds the tunnel sessions of this gateway. All methods may be called from any goroutine.
type Registry struct {
	options        Options
	metrics        *metrics
	newMultiplexer multiplexerFunc
	// unread counts the unread data of the streams of all sessions and links.
	unread         *budget.Budget
	sessionChanges sessionChanges
	offers         offers

	// mu guards the following fields. It is never held while dialing or closing.
	mu sync.RWMutex
	// members holds each connected member's sessions, the newest first, those of other protocols
	// after all native ones. The slices are replaced, never changed: a dial iterates over one
	// without the lock.
	members map[string][]*session
	// relayed makes the offers to members by streams of other gateways.
	relayed map[string]*dataPath
	closed  bool
	// serving counts the calls of Serve; it grows only while closed is false.
	serving sync.WaitGroup

	listeners listeners
	// peers are the other gateways, nil without any. loads are the numbers of members with sessions
	// there, if known.
	peers *Peers
	loads func() (loads []int, known bool)
	// full is true while this gateway asks agents to move.
	full atomic.Bool
}

// NewRegistry returns a registry without sessions. It fails when the metrics cannot be registered.
func NewRegistry(o Options) (*Registry, error) {
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	unread := budget.New(o.Unread)
	return &Registry{
		options:        o,
		metrics:        m,
		newMultiplexer: nativeMultiplexer(native.Gateway, o.MaxStreamsPerSession, unread),
		unread:         unread,
		members:        map[string][]*session{},
		relayed:        map[string]*dataPath{},
		offers:         offers{byNonce: map[string]*offer{}},
		loads:          func() ([]int, bool) { return nil, false },

		sessionChanges: sessionChanges{began: time.Now()},
	}, nil
}

// Serve serves the member's agent on conn, which it owns, until the session ends. It returns nil
// when ctx or Close has ended it, and otherwise the reason: [ErrTooManySessions], [ErrClosed], or
// one that wraps [ErrSessionClosed]. The caller has verified that the agent is the member's.
func (r *Registry) Serve(ctx context.Context, member string, conn net.Conn) error {
	return r.ServeReviewed(ctx, member, conn, Credential{})
}

// ServeReviewed is Serve for an agent whose credential is reviewed during the session.
func (r *Registry) ServeReviewed(ctx context.Context, member string, conn net.Conn, c Credential) (err error) {
	// The multiplexer's goroutines inherit the labels, so that a profile shows their member.
	pprof.Do(ctx, pprof.Labels("tunnel", "gateway", "member", member), func(ctx context.Context) {
		err = r.serve(ctx, member, conn, c)
	})
	if err != nil {
		return fmt.Errorf("serving the tunnel of member %q: %w", member, err)
	}
	return nil
}

func (r *Registry) serve(ctx context.Context, member string, conn net.Conn, c Credential) error {
	if err := r.admits(member); err != nil {
		_ = conn.Close()
		return err
	}
	mux, err := r.newMultiplexer(ctx, conn)
	if err != nil {
		return err
	}
	s := &nativeSession{Multiplexer: mux}
	if c.atPort && r.options.DataConnections {
		s.data = &dataPath{offers: &r.offers, member: member, results: r.metrics.data}
	}
	guarded := make(chan error, 1)
	go func() { guarded <- s.guard(ctx) }()
	err = r.serveSession(ctx, member, s, c)
	_ = mux.Close()
	if foreign := <-guarded; foreign != nil {
		return foreign
	}
	return err
}

// ServeSession is Serve for a session of another protocol, which it closes. The caller has verified
// that the agent is the member's.
func (r *Registry) ServeSession(ctx context.Context, member string, s Session) error {
	if err := r.serveSession(ctx, member, s, Credential{}); err != nil {
		return fmt.Errorf("serving the tunnel of member %q: %w", member, err)
	}
	return nil
}

func (r *Registry) serveSession(ctx context.Context, member string, inner Session, c Credential) error {
	defer inner.Close()
	s := &session{Session: inner, member: member, max: int64(r.options.MaxStreamsPerSession), meter: r.metrics.of(member), sessionChanges: &r.sessionChanges}
	if err := r.add(s); err != nil {
		return err
	}
	defer r.serving.Done()
	defer r.remove(s)
	// The agent closes the session that this one replaces when it receives the message. Dials must
	// find this one by then.
	if own, ok := inner.(*nativeSession); ok {
		r.sendInfo(own)
	}
	revoked, wait := r.reviewed(ctx, s, c)
	defer wait()
	draining := s.Draining()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-revoked:
			return err
		case <-s.Done():
			if ctx.Err() != nil || r.isClosed() {
				return nil
			}
			return s.Err()
		case <-draining:
			draining = nil
			r.retire(s)
		}
	}
}

// admits returns ErrTooManySessions or ErrClosed if the member must not have one more session.
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
	others := r.members[s.member]
	at := 0
	if _, own := s.Session.(*nativeSession); !own {
		at = slices.IndexFunc(others, func(o *session) bool { _, own := o.Session.(*nativeSession); return !own })
		if at < 0 {
			at = len(others)
		}
	}
	r.members[s.member] = slices.Insert(slices.Clone(others), at, s)
	r.serving.Add(1)
	r.mu.Unlock()
	s.meter.sessions.Inc()
	r.listeners.notify(s.member, r.Connected)
	r.SessionsChanged(s.member)
	return nil
}

// SessionsChanged makes callers open new connections to the member, here and at other gateways; see
// [Registry.LastSessionChange]. Connections that they keep open would stay in the session that a new one
// replaces. Sessions that combine several streams of an agent call it themselves.
func (r *Registry) SessionsChanged(member string) {
	r.sessionChanges.note(member, time.Now())
	r.listeners.repeat(member, r.Connected)
}

// retire takes a session out of use; its streams continue.
func (r *Registry) retire(s *session) {
	r.sessionChanges.note(s.member, time.Now())
	r.mu.Lock()
	s.retired = true
	r.mu.Unlock()
	r.listeners.notify(s.member, r.Connected)
}

func (r *Registry) remove(s *session) {
	r.sessionChanges.note(s.member, time.Now())
	r.mu.Lock()
	rest := slices.DeleteFunc(slices.Clone(r.members[s.member]), func(other *session) bool { return other == s })
	if len(rest) == 0 {
		delete(r.members, s.member)
	} else {
		r.members[s.member] = rest
	}
	r.mu.Unlock()
	s.meter.sessions.Dec()
	r.listeners.notify(s.member, r.Connected)
}

// Connected is true if the member has a session here that accepts dials.
func (r *Registry) Connected(member string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return !r.closed && slices.ContainsFunc(r.members[member], func(s *session) bool { return !s.retired })
}

// Reachable is true if a dial to the member can succeed: it has a session here, or at another
// gateway that this one knows.
func (r *Registry) Reachable(member string) bool {
	return r.Connected(member) || len(r.peerLinks(member)) > 0
}

func (r *Registry) isRetired(s *session) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return s.retired
}

func (r *Registry) sessions(member string) []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return nil
	}
	return r.members[member]
}

// Subscribe calls changed when a member gets its first session or loses its last, and once now for
// every connected member. Calls come one at a time, from the goroutines of sessions, so changed
// must not block. Unsubscribing stops the calls, and waits for a running one.
func (r *Registry) Subscribe(changed func(member string, connected bool)) (unsubscribe func()) {
	return r.listeners.add(subscriber{changed: changed})
}

// Disconnect ends the member's sessions and drops its metrics. Use it for a member that has left
// the fleet or whose agent's identity was revoked. An agent that is still authorized reconnects.
func (r *Registry) Disconnect(member string) {
	for _, s := range r.sessions(member) {
		_ = s.Close()
	}
	r.mu.Lock()
	delete(r.relayed, member)
	r.mu.Unlock()
	r.metrics.forget(member)
}

// Renew asks all agents to reconnect, for example after a change of the certificate that they
// verified. It cuts nothing: an agent closes its old session when the new one is established and
// the old one's streams have ended.
func (r *Registry) Renew() {
	for _, s := range r.all() {
		s.Drain()
	}
}

// SendInfoAll sends Options.Info to all agents again, after it has changed.
func (r *Registry) SendInfoAll() {
	for _, s := range r.all() {
		if own, ok := s.Session.(*nativeSession); ok {
			r.sendInfo(own)
		}
	}
}

func (r *Registry) sendInfo(s *nativeSession) {
	if r.options.Info == nil {
		return
	}
	info := r.options.Info()
	info.Full = r.full.Load()
	message, err := json.Marshal(info)
	if err == nil && len(message) <= native.MaxInfo {
		s.SendInfo(message)
	}
}

func (r *Registry) all() []*session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var all []*session
	for _, sessions := range r.members {
		all = append(all, sessions...)
	}
	return all
}

// Close refuses new sessions and dials, and asks all agents to use other gateways. It waits until
// the open streams have ended or ctx does, and then ends all sessions. It returns when every Serve
// has.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	all := r.all()
	for _, s := range all {
		s.Drain()
		// Subscribers that route dials here must learn that it accepts none any more.
		r.listeners.notify(s.member, r.Connected)
	}
	drain(ctx, all)
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() { _ = s.Close() })
	}
	closing.Wait()
	r.serving.Wait()
	return nil
}

func drain(ctx context.Context, sessions []*session) {
	poll(ctx.Done(), func() bool {
		return !slices.ContainsFunc(sessions, func(s *session) bool { return s.open.Load() > 0 })
	})
}

func (r *Registry) isClosed() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.closed
}
