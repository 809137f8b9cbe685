// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/pprof"
	"sync"
	"time"

	"google.golang.org/grpc"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

// Connector is our agent as a Konnectivity agent: it keeps a stream to every server behind one
// address and serves the dials that come in. Fill in the fields, then call Run once.
type Connector struct {
	// Member is this member's name, for logs, profiles and its identifier host=.
	Member string
	// Address is host:port of the servers.
	Address string
	// TLS verifies the servers, and has this agent's certificate if it has one.
	TLS *tls.Config
	// Token returns the bearer token for one attempt; nil sends none.
	Token func(ctx context.Context) (string, error)
	// DialContext makes the connection below TLS; nil dials directly.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// ID distinguishes this agent from others of the member.
	ID string
	// Targets is what our own gateway can reach here, by name.
	Targets map[string]tunnel.Target
	// APIServer are the addresses, as host:port, by which other servers request target
	// [tunnel.APIServer].
	APIServer []string
	// Allow lists other addresses that may be dialed.
	Allow Allow
	// OnStateChange receives the first stream, the loss of the last, and every failed attempt while
	// there is none, in order. It must not block.
	OnStateChange func(tunnel.State)
	// MaxConnections limits the connections of one stream; 0 is 4096.
	MaxConnections int
	// QueueLimit limits the bytes that a connection from a server without flow control buffers for
	// a target that does not read; 0 is 8 MiB.
	QueueLimit int
	// Unread is the same limit for all connections together; 0 is 256 MiB.
	Unread int64
	// ConnectTime limits one attempt to connect; 0 is 20 s.
	ConnectTime time.Duration
	// DrainTime is how long connections may take to end after ctx has ended; 0 is 5 s.
	DrainTime time.Duration
	// PingAfter is when a silent server is pinged; 0 is 15 s. After the agent has met a server of
	// upstream's it is at least 35 s, because upstream ends connections that are pinged more often
	// than every 30 s.
	PingAfter time.Duration
	// Metrics counts streams and packets. If nil, there are no metrics.
	Metrics *AgentMetrics
	// Clock and Random (in [0,1)) decide the waits between attempts. If unset, they are the real
	// ones.
	Clock  clock.Clock
	Random func() float64

	unread *budget.Budget
}

const (
	// Waits after failures in a row are random between the floor and a limit that doubles up to the
	// ceiling, as for the other tunnels of an agent.
	waitFloor   = 200 * time.Millisecond
	waitFirst   = time.Second
	waitCeiling = 30 * time.Second
	// duplicateWait is the wait after the agent met a known server: a load balancer chooses which
	// one answers.
	duplicateWait = time.Second
	// discoverEvery is how often the agent looks for more servers.
	discoverEvery = 5 * time.Minute
	// upstreamPings is the ping interval for a server of upstream's.
	upstreamPings = 35 * time.Second
	// stableAfter is how long a stream has to last for its loss to count as the first failure.
	stableAfter = time.Minute
)

// Run keeps the streams until ctx ends. It returns nil when ctx and all connections have ended. If
// a field is invalid it returns an error at once.
func (c *Connector) Run(ctx context.Context) error {
	run, err := c.withDefaults()
	if err != nil {
		return err
	}
	pprof.Do(ctx, pprof.Labels("tunnel", "konnectivity-agent", "member", c.Member), func(ctx context.Context) {
		(&servers{Connector: run, ended: make(chan struct{}, 1), open: map[string]*connection{}, known: 1}).loop(ctx)
	})
	return nil
}

func (c *Connector) withDefaults() (*Connector, error) {
	if c.Member == "" || c.Address == "" || c.ID == "" || c.TLS == nil {
		return nil, errors.New("a Konnectivity connector needs a member, an address, an ID and TLS")
	}
	for _, address := range c.APIServer {
		if _, err := parseAddress(address); err != nil {
			return nil, fmt.Errorf("reading %q as an address of the API server: %w", address, err)
		}
	}
	run := *c
	run.MaxConnections = orElse(run.MaxConnections, 4096)
	run.QueueLimit = orElse(run.QueueLimit, 8<<20)
	run.unread = budget.New(orElse(run.Unread, 256<<20))
	run.ConnectTime = orElse(run.ConnectTime, 20*time.Second)
	run.DrainTime = orElse(run.DrainTime, 5*time.Second)
	run.PingAfter = orElse(run.PingAfter, pingAfter)
	if run.DialContext == nil {
		run.DialContext = new(net.Dialer).DialContext
	}
	if run.OnStateChange == nil {
		run.OnStateChange = func(tunnel.State) {}
	}
	if run.Metrics == nil {
		m, err := NewAgentMetrics(nil)
		if err != nil {
			return nil, err
		}
		run.Metrics = m
	}
	if run.Clock == nil {
		run.Clock = clock.RealClock{}
	}
	if run.Random == nil {
		run.Random = rand.Float64
	}
	return &run, nil
}

// servers are the servers to which the agent is connected. Only the goroutine of loop connects.
type servers struct {
	*Connector
	// ended has room for one signal that a stream has ended.
	ended chan struct{}
	// serving counts the streams that are being served.
	serving sync.WaitGroup

	// mu guards the following fields.
	mu   sync.Mutex
	open map[string]*connection
	// known is the number of servers that the last server reported.
	known int
	// failures in a row, of attempts and of streams that did not last.
	failures int
}

func (s *servers) loop(ctx context.Context) {
	defer s.serving.Wait()
	for ctx.Err() == nil {
		s.rest(ctx, s.attempt(ctx))
	}
}

// rest waits before the next attempt. While all servers are connected, the loss of one ends this
// wait and begins another, so that agents of a restarted server do not reconnect in one burst.
func (s *servers) rest(ctx context.Context, wait time.Duration) {
	ended := s.ended
	if wait != discoverEvery {
		ended = nil
	}
	select {
	case <-s.Clock.After(wait):
	case <-ended:
		s.rest(ctx, s.failed())
	case <-ctx.Done():
	}
}

// attempt connects once and returns how long to wait before the next one.
func (s *servers) attempt(ctx context.Context) time.Duration {
	log := klog.FromContext(ctx).WithValues("member", s.Member)
	connected, err := s.connect(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return 0
		}
		s.Metrics.serverFailures.WithLabelValues("to_server").Inc()
		wait := s.failed()
		log.Info("Could not reach a Konnectivity server", "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
		s.reportIfAlone(err)
		return wait
	}
	if !connected.info.extended && s.PingAfter < upstreamPings {
		connected.close()
		s.PingAfter = upstreamPings
		return 0
	}
	isNew, missing := s.met(connected)
	if isNew {
		log.Info("Connected a Konnectivity tunnel", "server", connected.info.id, "servers", connected.info.count)
		s.serving.Go(func() { s.serve(ctx, connected) })
	} else {
		connected.close()
	}
	switch {
	case !missing:
		return discoverEvery
	case isNew:
		return 0
	}
	return duplicateWait/2 + time.Duration(s.Random()*float64(duplicateWait))
}

// failed counts a failure and returns the wait after it.
func (s *servers) failed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	top := min(waitFirst<<min(s.failures-1, 10), waitCeiling)
	return waitFloor + time.Duration(s.Random()*float64(top-waitFloor))
}

// reportIfAlone reports a failure if no server is connected.
func (s *servers) reportIfAlone(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) == 0 {
		s.OnStateChange(tunnel.State{Reason: reason})
	}
}

// met records a server. The agent keeps one connection to each server.
func (s *servers) met(c *connection) (isNew, missing bool) {
	info := c.info
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = info.count
	s.Metrics.knownServers.Set(float64(info.count))
	if s.open[info.id] != nil {
		return false, len(s.open) < s.known
	}
	s.open[info.id] = c
	s.Metrics.servers.Set(float64(len(s.open)))
	if len(s.open) == 1 {
		s.OnStateChange(tunnel.State{Connected: true, Path: tunnel.ViaKonnectivity})
	}
	return true, len(s.open) < s.known
}

// left records that a stream has ended.
func (s *servers) left(c *connection, lasted time.Duration, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lasted >= stableAfter {
		s.failures = 0
	}
	s.forget(c)
	if len(s.open) == 0 {
		s.OnStateChange(tunnel.State{Reason: reason})
	}
}

// drained records that a stream needs a replacement, and is served until it ends.
func (s *servers) drained(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(c)
}

// forget makes the agent reconnect to the server; mu is held.
func (s *servers) forget(c *connection) {
	if s.open[c.info.id] != c {
		return
	}
	delete(s.open, c.info.id)
	s.Metrics.servers.Set(float64(len(s.open)))
	notify(s.ended)
}

// serve serves one server's stream until it ends.
func (s *servers) serve(ctx context.Context, c *connection) {
	began := s.Clock.Now()
	err := serveEndpoint(ctx, s.Connector, c, func() { s.drained(c) })
	if ctx.Err() == nil {
		s.Metrics.serverFailures.WithLabelValues("from_server").Inc()
		s.Metrics.errors.WithLabelValues(toAgent, "Unavailable", nothing.String()).Inc()
		klog.FromContext(ctx).Info("Lost a Konnectivity tunnel", "member", s.Member, "server", c.info.id, "reason", err.Error())
	}
	s.left(c, s.Clock.Since(began), err)
}

// connection is one stream to one server, and the HTTP/2 connection below it. close ends both.
type connection struct {
	stream grpc.ClientStream
	info   serverInfo
	close  func()
}

// connect opens a stream and waits for the server to introduce itself.
func (s *servers) connect(ctx context.Context) (*connection, error) {
	md := metadata.Pairs(headerAgentID, s.ID, headerAgentIdentifiers, "host="+s.Member, headerExtensions, extensions)
	if s.Token != nil {
		token, err := s.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("getting a token for the Konnectivity server: %w", err)
		}
		md.Set(headerAuthorization, "Bearer "+token)
	}
	conn, err := grpc.NewClient("passthrough:///"+s.Address, s.dialOptions()...)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.Address, err)
	}
	// The stream outlives ctx: it drains then.
	streamCtx, cancel := context.WithCancel(metadata.NewOutgoingContext(context.WithoutCancel(ctx), md))
	end := func() {
		cancel()
		_ = conn.Close()
	}
	stop := context.AfterFunc(ctx, cancel)
	late := time.AfterFunc(s.ConnectTime, cancel)
	c, err := introduce(streamCtx, conn)
	inTime := late.Stop()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		end()
		if !inTime {
			err = fmt.Errorf("no answer within %s", s.ConnectTime)
		}
		return nil, fmt.Errorf("connecting to %s: %w", s.Address, err)
	}
	c.close = end
	return c, nil
}

func introduce(ctx context.Context, conn *grpc.ClientConn) (*connection, error) {
	desc := streamDesc("Connect", nil)
	stream, err := conn.NewStream(ctx, &desc, methodConnect, grpc.ForceCodecV2(codec{}))
	if err != nil {
		return nil, err
	}
	md, err := stream.Header()
	if err != nil {
		return nil, err
	}
	info, err := parseServerInfo(md)
	if err != nil {
		// A server that refuses sends no introduction, but an error with the reason.
		if refused := stream.RecvMsg(new(packet)); refused != nil {
			return nil, refused
		}
		return nil, err
	}
	return &connection{stream: stream, info: info}, nil
}

func (s *servers) dialOptions() []grpc.DialOption {
	config := s.TLS.Clone()
	return []grpc.DialOption{
		grpc.WithTransportCredentials(grpccredentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return s.DialContext(ctx, "tcp", address)
		}),
		experimental.WithBufferPool(buffers),
		grpc.WithUserAgent("fleetgate-agent"),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithStaticStreamWindowSize(agentWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithReadBufferSize(connBuffer),
		grpc.WithWriteBufferSize(connBuffer),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.PingAfter, Timeout: pingWait}),
	}
}
