// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

const (
	// handshakeTime limits a peer's TLS handshake.
	handshakeTime = 10 * time.Second
	// maxHandshakes limits those in progress; further connections wait to be accepted.
	maxHandshakes = 256
	// maxAddressHandshakes limits those of one address. All agents may have the address of a load
	// balancer.
	maxAddressHandshakes = 128
	// maxHeaders limits what a peer sends besides packets, in bytes.
	maxHeaders = 16 << 10
	// pingAfter and pingWait detect a vanished peer within 25 s.
	pingAfter = 15 * time.Second
	pingWait  = 10 * time.Second
	// pingMinimum is how often peers may ping; upstream's ping about every hour.
	pingMinimum = 5 * time.Second
	// idleTime is how long a connection without a stream is kept.
	idleTime = 2 * time.Minute
	// connBuffer is the size of the buffers below gRPC, in bytes.
	connBuffer = 128 << 10
)

// protocolGRPC is HTTP/2 in TLS's application protocols.
const protocolGRPC = "h2"

// newGRPCServer returns a server for connections that have done their handshake. streams limits the
// streams of one connection, windowSize the unread data of one stream.
func newGRPCServer(streams uint32, windowSize int32) *grpc.Server {
	return grpc.NewServer(
		grpc.ForceServerCodecV2(codec{}),
		grpc.Creds(handshaken{}),
		experimental.BufferPool(buffers),
		grpc.MaxConcurrentStreams(streams),
		grpc.MaxRecvMsgSize(maxPacket),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.StaticStreamWindowSize(windowSize),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ReadBufferSize(connBuffer),
		grpc.WriteBufferSize(connBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWait, MaxConnectionIdle: idleTime}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingMinimum, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	)
}

const (
	// agentWindow is gRPC's window for an agent's stream, which carries all of its connections:
	// enough for 400 MB/s at 20 ms.
	agentWindow = 8 << 20
	// frontendWindow is that of a frontend's stream, which carries one.
	frontendWindow = 1 << 20
	// connWindow is that of a connection below gRPC streams.
	connWindow = 16 << 20
)

// accept accepts connections of l, does their handshakes and passes each to the server of its
// application protocol, until ctx ends; l is closed then. The empty protocol is for peers without
// one.
func accept(ctx context.Context, l net.Listener, config *tls.Config, serve map[string]func(*tls.Conn)) error {
	guard := tunnel.NewGuard(l, maxAddressHandshakes)
	stop := context.AfterFunc(ctx, func() { _ = guard.Close() })
	defer stop()
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	room := make(chan struct{}, maxHandshakes)
	for {
		conn, err := guard.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting connections at %s: %w", l.Addr(), err)
		}
		room <- struct{}{}
		handshakes.Go(func() {
			defer func() { <-room }()
			shake(ctx, conn, guard, config, serve)
		})
	}
}

func shake(ctx context.Context, raw net.Conn, guard *tunnel.Guard, config *tls.Config, serve map[string]func(*tls.Conn)) {
	bounded, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn := tls.Server(raw, config)
	if err := conn.HandshakeContext(bounded); err != nil {
		_ = raw.Close()
		klog.FromContext(ctx).V(2).Info("Konnectivity peer was rejected", "peer", raw.RemoteAddr().String(), "reason", err.Error())
		return
	}
	guard.Admitted(raw.RemoteAddr())
	handler, ok := serve[conn.ConnectionState().NegotiatedProtocol]
	if !ok {
		_ = conn.Close()
		return
	}
	handler(conn)
}

// connListener is a listener of connections that somebody else has accepted.
type connListener struct {
	address net.Addr
	conns   chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

func newConnListener(address net.Addr) *connListener {
	return &connListener{address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// hand waits until the connection is accepted; a closed listener closes it.
func (h *connListener) hand(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (h *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *connListener) Close() error {
	h.closing.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *connListener) Addr() net.Addr { return h.address }

// notifyingConn signals when it is closed.
type notifyingConn struct {
	*tls.Conn
	closed  chan struct{}
	closing sync.Once
}

func (c *notifyingConn) Close() error {
	defer c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// handshaken gives gRPC the result of a finished handshake.
type handshaken struct{}

var _ credentials.TransportCredentials = handshaken{}

// ServerHandshake implements credentials.TransportCredentials.
func (handshaken) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, ok := conn.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil, nil, fmt.Errorf("a connection of type %T is not TLS", conn)
	}
	return conn, credentials.TLSInfo{
		State:          secured.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (handshaken) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

// Info implements credentials.TransportCredentials.
func (handshaken) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (handshaken) Clone() credentials.TransportCredentials { return handshaken{} }

// OverrideServerName implements credentials.TransportCredentials.
func (handshaken) OverrideServerName(string) error { return nil }
