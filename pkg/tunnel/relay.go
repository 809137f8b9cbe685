// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// serveLink announces this gateway's members to another gateway and dials for it.
func (p *Peers) serveLink(ctx context.Context, raw net.Conn, guard *Guard) {
	conn := tls.Server(native.Batch(raw), p.tls)
	handshakeCtx, cancel := context.WithTimeout(ctx, peerTimeout)
	err := conn.HandshakeContext(handshakeCtx)
	cancel()
	if err != nil {
		_ = raw.Close()
		klog.FromContext(ctx).V(1).Info("Refused a link of another gateway", "from", raw.RemoteAddr().String(), "reason", err.Error())
		return
	}
	guard.Admitted(raw.RemoteAddr())
	if !p.enter() {
		_ = raw.Close()
		return
	}
	defer p.leave()
	mux := native.New(conn, native.Agent, native.Options{MaxStreams: 2 * defaultMaxStreams, Budget: p.registry.unread})
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = mux.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer mux.Close()
	running.Go(func() { p.announce(ctx, mux) })
	for {
		stream, err := mux.Accept(ctx)
		if err != nil {
			return
		}
		running.Go(func() { p.relay(ctx, stream) })
	}
}

// announce writes the name of this gateway, and then a line for each member that gets a session here
// or loses its last. The other gateway then uses new connections for a member that has got a better
// session.
func (p *Peers) announce(ctx context.Context, mux *native.Multiplexer) {
	stream, err := mux.Open(ctx, []byte(p.name+"\n"))
	if err != nil {
		return
	}
	defer stream.Close()
	lines := &lines{some: make(chan struct{}, 1), pending: map[string]bool{}}
	defer p.registry.listeners.add(subscriber{changed: lines.add, repeats: true})()
	for {
		select {
		case <-lines.some:
		case <-mux.Done():
			return
		}
		if _, err := io.WriteString(stream, lines.take()); err != nil {
			return
		}
	}
}

// relay serves one dial of another gateway with a session of this gateway only. Sessions of a third
// gateway must be dialed there.
func (p *Peers) relay(ctx context.Context, stream net.Conn) {
	defer stream.Close()
	_ = stream.SetDeadline(time.Now().Add(headerTime))
	h, err := readHeader(stream)
	_ = stream.SetDeadline(time.Time{})
	if err != nil {
		refuse(stream, err)
		return
	}
	conn, err := p.dialFor(ctx, h)
	if err != nil {
		refuse(stream, err)
		return
	}
	if _, err := stream.Write(encodeResponse(acceptedAs(conn), "")); err != nil {
		abandon(conn)
		return
	}
	_ = pipe(ctx, stream, conn)
}

func (p *Peers) dialFor(ctx context.Context, h header) (net.Conn, error) {
	if h.member == "" || h.hops != onlyHop {
		return nil, &RefusedError{Code: Malformed, Message: fmt.Sprintf("a stream of another gateway names a member and has %d hop, this one has %d", onlyHop, h.hops)}
	}
	limit := p.registry.options.DialTimeout
	if h.limit > 0 {
		limit = min(h.limit, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := p.registry.dialHere(ctx, h.member, h.target, dialing{nonce: h.nonce})
	if errors.Is(err, ErrNotConnected) {
		return nil, &RefusedError{Code: NotHere, Message: err.Error()}
	}
	return conn, err
}

// lines collects announcements. Only the latest state of a member counts.
type lines struct {
	// some gets a value when there are lines.
	some chan struct{}

	// mu guards pending.
	mu      sync.Mutex
	pending map[string]bool
}

func (l *lines) add(member string, connected bool) {
	l.mu.Lock()
	l.pending[member] = connected
	l.mu.Unlock()
	select {
	case l.some <- struct{}{}:
	default:
	}
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text []byte
	for member, connected := range l.pending {
		sign := byte('-')
		if connected {
			sign = '+'
		}
		text = append(append(append(text, sign), member...), '\n')
	}
	clear(l.pending)
	return string(text)
}
