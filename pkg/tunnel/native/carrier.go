// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"
	"k8s.io/klog/v2"
)

const (
	// pingInterval is the mean time between two pings; each wait is spread by a
	// fifth in both directions, so that a thousand sessions do not beat together.
	pingInterval = 10 * time.Second
	// peerSilence is how long nothing may arrive before the peer is dead: two
	// pings and a little. With the interval above a dead peer is known in 25 s.
	peerSilence = 25 * time.Second
	// writeStall is how long one frame (64 KiB at most) may take to be written.
	writeStall = 25 * time.Second
	// queueLimit is how long a frame may wait for its turn. The wire's own limits
	// act long before; it must not act on a slow link with many streams, because
	// yamux then breaks one stream in the middle.
	queueLimit = 5 * time.Minute
	// streamWindow bounds what a stream holds for a reader that does not read, and
	// so what a session can make this process hold: streams x window. 1 MiB moves
	// 20 MB/s over a link of 50 ms.
	streamWindow = 1 << 20
	// acceptBacklog is how many streams may wait to be accepted; yamux resets what
	// comes beyond it.
	acceptBacklog = 256
	// lingerTime is how long a closed stream waits for the peer to close too.
	lingerTime = 30 * time.Second
	// maxFrame bounds one data frame: a stream that moves bulk data lets others in
	// between every 64 KiB.
	maxFrame = 64 << 10
)

var (
	// ErrSessionClosed is returned by a stream or carrier whose session has ended,
	// however it ended; the text tells the reason.
	ErrSessionClosed = errors.New("tunnel session closed")
	// ErrReset is returned by a stream that the peer abandoned. It is also
	// syscall.ECONNRESET, so callers written for TCP recognize it.
	ErrReset = fmt.Errorf("stream reset by the peer: %w", syscall.ECONNRESET)
	// ErrTooManyStreams is returned by Open when the session has as many streams
	// as it may have.
	ErrTooManyStreams = errors.New("too many streams in this session")
	// ErrPeerSilent is the reason of a session whose peer sent nothing, not even
	// an answer to a ping.
	ErrPeerSilent = errors.New("nothing arrived from the peer")
	// ErrPeerStalled is the reason of a session whose peer took nothing.
	ErrPeerStalled = errors.New("the peer took no data")

	errPeerClosed  = errors.New("the peer closed the connection")
	errLocalClosed = errors.New("closed by this side")
	errPingFlood   = fmt.Errorf("the peer sent more than %d pings in a second", pingsPerSecond)
)

// Side says which end of the connection a carrier is. It decides the numbers of
// streams only; either side can open them.
type Side int

const (
	// Gateway is the side in the hub's gateway.
	Gateway Side = iota
	// Agent is the side on the member.
	Agent
)

// Options tune a carrier; the zero value is sane.
type Options struct {
	// MaxStreams bounds the streams that Open allows at a time; 0 is 4096.
	MaxStreams int
	// Logger receives the multiplexer's remarks at verbosity 6.
	Logger klog.Logger
}

// Carrier is one session: a multiplexer and the connection below it. All methods
// may be called from any goroutine.
type Carrier struct {
	wire    *wire
	session *yamux.Session
	max     int

	closing sync.Once
	// background counts the goroutines of this carrier, Close waits for them.
	background sync.WaitGroup
	// stopMu guards stopped: after it is set no goroutine starts any more.
	stopMu  sync.Mutex
	stopped bool
}

// New starts a session on conn, which belongs to the carrier from here on, also
// when New fails.
func New(conn net.Conn, side Side, o Options) (*Carrier, error) {
	w := newWire(conn)
	start := yamux.Client
	if side == Agent {
		start = yamux.Server
	}
	session, err := start(w, yamuxConfig(o))
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("starting the multiplexer: %w", err)
	}
	c := &Carrier{wire: w, session: session, max: o.MaxStreams}
	if c.max <= 0 {
		c.max = 4096
	}
	c.spawn(c.keepAlive)
	return c, nil
}

func yamuxConfig(o Options) *yamux.Config {
	return &yamux.Config{
		AcceptBacklog:          acceptBacklog,
		ConnectionWriteTimeout: queueLimit,
		MaxStreamWindowSize:    streamWindow,
		// Yamux's own keepalive takes a ping that waits behind bulk data for a dead
		// peer; the wire judges by what arrives.
		EnableKeepAlive:   false,
		KeepAliveInterval: pingInterval,
		// No time limits on streams: a half-closed stream may live for hours, and a
		// stream that was not accepted ends with its dial or its session.
		StreamOpenTimeout:  0,
		StreamCloseTimeout: 0,
		Logger:             remarks{o.Logger},
	}
}

// Open opens a stream to the peer, whose first bytes are first. It returns when
// they are on their way, which says nothing of whether the peer accepts the stream;
// it fails at once with [ErrTooManyStreams] or [ErrSessionClosed], and with the
// cause of ctx when that ends first. first must not be changed afterwards.
func (c *Carrier) Open(ctx context.Context, first []byte) (net.Conn, error) {
	if c.session.NumStreams() >= c.max {
		return nil, ErrTooManyStreams
	}
	type opened struct {
		stream *Stream
		err    error
	}
	// Yamux waits without a context for room in the peer's backlog and on the wire.
	result := make(chan opened, 1)
	c.spawn(func() {
		stream, err := c.open(first)
		result <- opened{stream, err}
	})
	select {
	case r := <-result:
		if r.err != nil {
			return nil, r.err
		}
		return r.stream, nil
	case <-ctx.Done():
		c.spawn(func() {
			if r := <-result; r.err == nil {
				_ = r.stream.Reset()
			}
		})
		return nil, context.Cause(ctx)
	}
}

func (c *Carrier) open(first []byte) (*Stream, error) {
	inner, err := c.session.OpenStream()
	if err != nil {
		return nil, c.closedError(err)
	}
	stream := c.newStream(inner)
	if _, err := stream.Write(first); err != nil {
		_ = stream.Reset()
		return nil, err
	}
	return stream, nil
}

// Accept waits for the peer's next stream. It ends with an error for which
// errors.Is(err, ErrSessionClosed) when the session does.
func (c *Carrier) Accept(ctx context.Context) (net.Conn, error) {
	stream, err := c.session.AcceptStreamWithContext(ctx)
	if err == nil {
		return c.newStream(stream), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, c.closedError(c.wire.failed(err))
}

// Close ends the session and all its streams and waits for its goroutines.
func (c *Carrier) Close() error {
	c.closing.Do(func() {
		if !c.session.IsClosed() {
			_ = c.wire.failed(errLocalClosed)
		}
		_ = c.session.Close()
	})
	c.stopMu.Lock()
	c.stopped = true
	c.stopMu.Unlock()
	c.background.Wait()
	return nil
}

// spawn runs f in a goroutine that Close waits for; after Close, when nothing can
// block f any more, it runs f at once.
func (c *Carrier) spawn(f func()) {
	c.stopMu.Lock()
	if c.stopped {
		c.stopMu.Unlock()
		f()
		return
	}
	c.background.Add(1)
	c.stopMu.Unlock()
	go func() {
		defer c.background.Done()
		f()
	}()
}

// Done is closed when the session has ended.
func (c *Carrier) Done() <-chan struct{} { return c.session.CloseChan() }

// Err says why the session ended, nil while it lasts. errors.Is(err,
// ErrSessionClosed) holds for every reason.
func (c *Carrier) Err() error {
	select {
	case <-c.Done():
		return c.closedError(nil)
	default:
		return nil
	}
}

// closedError gives the reason on the wire precedence over what the multiplexer
// made of it.
func (c *Carrier) closedError(err error) error {
	if reason := c.wire.reason(); reason != nil {
		return fmt.Errorf("%w: %w", ErrSessionClosed, reason)
	}
	if err == nil || isLocalClose(err) {
		return ErrSessionClosed
	}
	return fmt.Errorf("%w: %w", ErrSessionClosed, err)
}

// keepAlive gives the peer a sign of life, and a reason to give one, about every
// pingInterval. It judges nothing: the wire does.
func (c *Carrier) keepAlive() {
	for {
		spread := time.Duration((0.8 + 0.4*rand.Float64()) * float64(pingInterval))
		timer := time.NewTimer(spread)
		select {
		case <-timer.C:
			_, _ = c.session.Ping()
		case <-c.Done():
			timer.Stop()
			return
		}
	}
}

// remarks is yamux's logger. What it says describes single frames of one peer, of
// use only to someone who debugs this package.
type remarks struct{ logger klog.Logger }

func (r remarks) Print(v ...any)   { r.say(func() string { return fmt.Sprint(v...) }) }
func (r remarks) Println(v ...any) { r.say(func() string { return fmt.Sprint(v...) }) }
func (r remarks) Printf(format string, v ...any) {
	r.say(func() string { return fmt.Sprintf(format, v...) })
}

func (r remarks) say(text func() string) {
	if log := r.logger.V(6); log.Enabled() {
		log.Info("Multiplexer remark", "remark", text())
	}
}
