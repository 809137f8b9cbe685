// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// AgentServerOptions of an AgentServer; Credentials, IsAgentOf, MembersOf, Join and ID are required,
// zero values of the others are sane.
type AgentServerOptions struct {
	// Credentials authenticate agents.
	Credentials Credentials
	// IsAgentOf is true for a user who is the member's agent. It looks at that member only.
	IsAgentOf func(ctx context.Context, user, member string) (bool, error)
	// MembersOf returns the members whose agent an identity is. It is called for agents that do not
	// say which member they serve.
	MembersOf func(ctx context.Context, user string) ([]string, error)
	// Watched is true if Disconnect is called for the member when the credentials of this user are
	// revoked. The tokens of others are reviewed again and again. Optional.
	Watched func(user, member string) bool
	// Join adds all agents of a member as one session, and returns when that has ended:
	// [tunnel.Registry.ServeSession]. Dials come from there, so other gateways know the member and
	// forward dials.
	Join func(ctx context.Context, member string, agents tunnel.Session) error
	// Changed is called when a connected member has got one more stream, which new dials should use:
	// [tunnel.Registry.SessionsChanged]. Optional.
	Changed func(member string)
	// Certificate is the server's, for Serve. For Take, the caller has done the handshake.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ID distinguishes this gateway from its other replicas.
	ID string
	// Replicas returns the number of gateways, for each stream: an agent connects until it has met
	// them all. nil is one.
	Replicas func() int
	// StreamsPerAgent is how many streams an agent opens to one gateway, each with its own windows.
	// Upstream's agents do so too, because each stream looks like a server. 0 is 1.
	StreamsPerAgent int
	// APIServer is the address of the member's API server for upstream's agents; empty is
	// kubernetes.default.svc:443. Our own agents know it.
	APIServer string
	// APIServerOf returns the address for one member, as host:port; empty is APIServer. nil is
	// APIServer for all.
	APIServerOf func(ctx context.Context, member string) (string, error)
	// Allow lists other addresses that may be dialed through upstream's agents, which dial whatever
	// they are asked to.
	Allow Allow
	// MaxSessions limits the streams of one member; 0 is 16.
	MaxSessions int
	// MaxConnections limits the connections of one stream; 0 is 4096.
	MaxConnections int
	// QueueLimit limits the unread bytes of a connection of an agent without flow control; 0 is 8
	// MiB.
	QueueLimit int
	// Unread limits the unread bytes of the connections of all agents; 0 is 512 MiB. Beyond it,
	// connections with much unread data are treated like those over QueueLimit.
	Unread int64
	// ReviewPeriod is how often an agent's authorization is checked again; 0 is 10 s.
	ReviewPeriod time.Duration
	// Metrics counts sessions and packets. If nil, there are no metrics.
	Metrics *Metrics
}

func (o AgentServerOptions) withDefaults() (AgentServerOptions, error) {
	if err := o.Credentials.validate(); err != nil {
		return o, err
	}
	if o.IsAgentOf == nil || o.MembersOf == nil || o.Join == nil || o.ID == "" {
		return o, errors.New("a listener for agents needs IsAgentOf, MembersOf, Join and an ID")
	}
	if o.Watched == nil {
		o.Watched = func(_, _ string) bool { return false }
	}
	if o.Replicas == nil {
		o.Replicas = func() int { return 1 }
	}
	if o.StreamsPerAgent = max(o.StreamsPerAgent, 1); o.StreamsPerAgent > maxServers {
		return o, fmt.Errorf("%d streams per agent are more than the maximum of %d", o.StreamsPerAgent, maxServers)
	}
	if o.APIServer == "" {
		o.APIServer = "kubernetes.default.svc:443"
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.APIServerOf == nil {
		o.APIServerOf = func(context.Context, string) (string, error) { return "", nil }
	}
	o.MaxSessions = orElse(o.MaxSessions, 16)
	o.MaxConnections = orElse(o.MaxConnections, 4096)
	o.QueueLimit = orElse(o.QueueLimit, 8<<20)
	o.Unread = orElse(o.Unread, 512<<20)
	o.ReviewPeriod = orElse(o.ReviewPeriod, 10*time.Second)
	if o.Metrics == nil {
		m, err := NewMetrics(nil)
		if err != nil {
			return o, err
		}
		o.Metrics = m
	}
	return o, nil
}

func orElse[T int | int64 | time.Duration](given, otherwise T) T {
	if given <= 0 {
		return otherwise
	}
	return given
}

// AgentServer accepts Konnectivity agents, upstream's and our own, and lets a registry dial through
// them. All methods may be called from any goroutine.
type AgentServer struct {
	options AgentServerOptions
	// arrived are connections after their handshake.
	arrived *connListener
	unread  *budget.Budget
	// joined counts the members that a registry knows.
	joined sync.WaitGroup

	// mu guards the following fields; never held while dialing.
	mu sync.RWMutex
	// members holds those that have an agent here.
	members map[string]*memberAgents
	closed  bool
}

// NewAgentServer returns a server without sessions.
func NewAgentServer(o AgentServerOptions) (*AgentServer, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &AgentServer{options: o, arrived: newConnListener(addr("agents")), unread: budget.New(o.Unread), members: map[string]*memberAgents{}}, nil
}

// Protocol is the ALPN protocol of Konnectivity agents.
const Protocol = protocolGRPC

// Serve is Run with a listener, which it owns and on which it does the handshakes.
func (a *AgentServer) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	if a.options.Certificate == nil {
		return errors.New("a listener for agents needs a certificate")
	}
	config := a.options.Credentials.tlsConfig(a.options.Certificate, []string{Protocol})
	var accepting sync.WaitGroup
	var err error
	accepting.Go(func() {
		err = accept(ctx, l, config, map[string]func(*tls.Conn){Protocol: func(c *tls.Conn) { a.arrived.hand(c) }})
	})
	runErr := a.Run(ctx, drain)
	accepting.Wait()
	return errors.Join(err, runErr)
}

// Run serves agents until ctx ends. Then it opens no new connections, waits up to drain for the
// open ones, and returns when all agents are disconnected. It can be called once.
func (a *AgentServer) Run(ctx context.Context, drain time.Duration) error {
	server := newGRPCServer(agentStreams, agentWindow)
	server.RegisterService(service("AgentService", "Connect", a.connect), nil)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(a.arrived) })
	<-ctx.Done()
	a.drain(ctx, drain)
	_ = a.arrived.Close()
	server.Stop()
	serving.Wait()
	a.joined.Wait()
	return nil
}

// Take serves an agent on a connection that somebody else has accepted, after a handshake that
// negotiated Protocol, until the connection is closed. Client certificates count only if that
// handshake has verified them.
func (a *AgentServer) Take(_ context.Context, conn *tls.Conn) {
	taken := &notifyingConn{Conn: conn, closed: make(chan struct{})}
	a.arrived.hand(taken)
	<-taken.closed
}

// agentStreams limits the streams of one agent's connection. Upstream's agents open one.
const agentStreams = 16

// connect serves one agent's stream, from its introduction to its end.
func (a *AgentServer) connect(stream grpc.ServerStream) error {
	ctx := stream.Context()
	a.options.Metrics.grpcConnections.WithLabelValues("Connect").Inc()
	defer a.options.Metrics.grpcConnections.WithLabelValues("Connect").Dec()
	id, member, agent, err := a.admit(ctx)
	if err != nil {
		a.options.Metrics.refused.WithLabelValues("agents", status.Code(err).String()).Inc()
		klog.FromContext(ctx).V(2).Info("Konnectivity agent was refused", "peer", peerAddress(ctx), "reason", err.Error())
		return err
	}
	s := newSession(stream, member, agent, a.options, a.unread)
	agents, err := a.add(s)
	if err != nil {
		return err
	}
	defer a.remove(agents, s)
	connected := a.options.Metrics.sessions.WithLabelValues(member)
	connected.Inc()
	defer connected.Dec()
	a.options.Changed(member)
	info := serverInfo{id: a.serverID(s.streamIndex), count: min(max(a.options.Replicas(), 1)*a.options.StreamsPerAgent, maxServers), extended: agent.extended}
	if err := stream.SendHeader(info.metadata()); err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "konnectivity", "member", member), func(ctx context.Context) {
		err = a.serve(ctx, s, id)
	})
	a.options.Metrics.streamError(fromAgent, err)
	klog.FromContext(ctx).V(2).Info("Konnectivity session ended", "member", member, "agent", agent.id, "reason", err.Error())
	return status.Error(codes.Unavailable, err.Error())
}

func (a *AgentServer) serverID(streamIndex int) string {
	if a.options.StreamsPerAgent == 1 {
		return a.options.ID
	}
	return a.options.ID + "/" + strconv.Itoa(streamIndex)
}

// serve runs a session, and ends it when its agent is no longer authorized.
func (a *AgentServer) serve(ctx context.Context, s *session, id Identity) error {
	ctx, cancel := context.WithCancel(ctx)
	revoked := make(chan error, 1)
	var reviewing sync.WaitGroup
	reviewing.Go(func() {
		if err := a.review(ctx, s, id); err != nil {
			revoked <- err
			s.end()
		}
	})
	err := s.run(s.stop, s.handle)
	cancel()
	reviewing.Wait()
	select {
	case err = <-revoked:
	default:
	}
	return err
}

// drain accepts no more sessions and dials, and waits for the open connections.
func (a *AgentServer) drain(ctx context.Context, grace time.Duration) {
	a.mu.Lock()
	a.closed = true
	var all []*session
	for _, agents := range a.members {
		all = append(all, agents.sessions...)
	}
	a.mu.Unlock()
	for _, s := range all {
		s.retire()
	}
	a.drainSessions(context.WithoutCancel(ctx), grace, all)
}

// drainPoll is how often a drain checks whether the last connection has ended.
const drainPoll = 50 * time.Millisecond

func (a *AgentServer) drainSessions(ctx context.Context, grace time.Duration, sessions []*session) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for slices.ContainsFunc(sessions, func(s *session) bool { return s.open.Load() > 0 && !isClosed(s.done) }) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
