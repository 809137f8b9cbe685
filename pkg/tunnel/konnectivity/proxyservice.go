// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// frontend is one stream of ProxyService: one dial, and its connection. gRPC's own flow control for
// the stream is therefore that of the connection, and no other connection can block it.
type frontend struct {
	server     *FrontendServer
	stream     messageStream
	id         Identity
	serverName string
	meter      *meter
	// random is the dial's number.
	random int64

	// mu guards conn, which the receiving goroutine needs.
	mu   sync.Mutex
	conn net.Conn
}

// frontendConnID is the ID of the one connection of a stream.
const frontendConnID = 1

// firstPacketTime is how long a stream may be open without a dial.
const firstPacketTime = 30 * time.Second

// proxy serves one frontend's stream.
func (f *FrontendServer) proxy(stream grpc.ServerStream) error {
	metrics := f.options.Metrics
	metrics.grpcConnections.WithLabelValues("Proxy").Inc()
	defer metrics.grpcConnections.WithLabelValues("Proxy").Dec()
	ctx := stream.Context()
	md, _ := metadata.FromIncomingContext(ctx)
	id, err := identifyPeer(ctx, f.options.Credentials, md.Get(headerAuthorization))
	if err != nil {
		metrics.refused.WithLabelValues("frontends", status.Code(err).String()).Inc()
		return err
	}
	if !f.take() {
		return status.Error(codes.ResourceExhausted, "too many connections of frontends are open")
	}
	defer f.release()
	c := &frontend{server: f, stream: stream, id: id, serverName: serverNameOf(ctx), meter: metrics.frontend()}
	err = c.serve(ctx)
	metrics.streamError(fromClient, err)
	return err
}

func serverNameOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(grpccredentials.TLSInfo); ok {
			return info.State.ServerName
		}
	}
	return ""
}

// serve answers the dial and copies bytes until the connection ends. The receiving goroutine ends
// with the stream.
func (c *frontend) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dial, err := c.awaitDial(ctx)
	if err != nil {
		return err
	}
	c.random = dial.random
	go c.receive(cancel)
	conn, refusal := c.server.dial(ctx, c.id, c.serverName, dial.protocol, dial.address)
	if refusal != nil {
		return c.send(packet{kind: dialResponse, random: c.random, reason: printable(refusal.Error())})
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { abandon(conn) })
	defer stop()
	if err := c.established(conn); err != nil {
		return err
	}
	return c.pump(conn)
}

// awaitDial reads the first packet with a meaning, which has to be a dial. A stream that does not
// dial is ended.
func (c *frontend) awaitDial(ctx context.Context) (packet, error) {
	first := make(chan packet, 1)
	failed := make(chan error, 1)
	go func() {
		p, err := c.firstPacket()
		if err != nil {
			failed <- err
			return
		}
		first <- p
	}()
	timer := time.NewTimer(firstPacketTime)
	defer timer.Stop()
	select {
	case p := <-first:
		return p, nil
	case err := <-failed:
		return packet{}, err
	case <-timer.C:
		return packet{}, status.Error(codes.DeadlineExceeded, "no dial came")
	case <-ctx.Done():
		return packet{}, status.FromContextError(ctx.Err()).Err()
	}
}

// maxStray is how many packets without a meaning may come before a dial.
const maxStray = 16

func (c *frontend) firstPacket() (packet, error) {
	for range maxStray {
		var p packet
		if err := c.stream.RecvMsg(&p); err != nil {
			if errors.Is(err, io.EOF) {
				return p, status.Error(codes.Canceled, "the frontend left without a dial")
			}
			return p, err
		}
		c.meter.received(&p)
		if p.kind == dialRequest {
			return p, nil
		}
		p.payload.Free()
		c.meter.foreign(p.kind)
	}
	return packet{}, status.Error(codes.InvalidArgument, "a stream begins with a dial")
}

// established publishes the connection to the receiving goroutine and the frontend.
func (c *frontend) established(conn net.Conn) error {
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	return c.send(packet{kind: dialResponse, random: c.random, connID: frontendConnID})
}

func (c *frontend) send(p packet) error {
	c.meter.sent(&p)
	return c.stream.SendMsg(&p)
}

// pump sends the member's data, and then the end. It waits while the frontend does not read.
func (c *frontend) pump(conn net.Conn) error {
	for {
		payload, err := readBuffer(conn)
		if len(payload) > 0 {
			began := time.Now()
			if sendErr := c.send(packet{kind: data, connID: frontendConnID, payload: payload}); sendErr != nil {
				c.server.options.Metrics.dialFailure("send_rsp")
				return sendErr
			}
			since(c.server.options.Metrics.frontendWrites, began)
		}
		if err != nil {
			return c.send(packet{kind: closeResponse, connID: frontendConnID, reason: reasonOf(err)})
		}
	}
}

// readBuffer reads into a buffer of the pool what fits into one packet for upstream.
func readBuffer(from net.Conn) (mem.BufferSlice, error) {
	buffer := buffers.Get(upstreamPayload)
	n, err := from.Read(*buffer)
	if n == 0 {
		buffers.Put(buffer)
		return nil, err
	}
	*buffer = (*buffer)[:n]
	return mem.BufferSlice{mem.NewBuffer(buffer, buffers)}, err
}

// reasonOf is empty for an end, and for one that the frontend asked for.
func reasonOf(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return ""
	}
	return printable(err.Error())
}

// receive handles the frontend's packets until it leaves. Writing waits for the member, and so does
// the frontend, because nobody else uses this stream.
func (c *frontend) receive(cancel func()) {
	defer cancel()
	for {
		var p packet
		if err := c.stream.RecvMsg(&p); err != nil {
			return
		}
		c.meter.received(&p)
		switch p.kind {
		case data:
			c.write(p)
		case closeRequest:
			if conn := c.own(p); conn != nil {
				_ = conn.Close()
			}
		case dialClose:
			if p.random == c.random && !c.isEstablished() {
				c.server.options.Metrics.dialFailure("frontend_close")
				return
			}
		default:
			p.payload.Free()
			c.meter.foreign(p.kind)
		}
	}
}

// own returns the stream's connection if the packet is about it.
func (c *frontend) own(p packet) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.connID != frontendConnID || c.conn == nil {
		c.meter.foreign(p.kind)
		return nil
	}
	return c.conn
}

func (c *frontend) isEstablished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil
}

// write passes data on. When the member accepts no more the pump notices.
func (c *frontend) write(p packet) {
	to := c.own(p)
	defer p.payload.Free()
	for _, b := range p.payload {
		if to == nil {
			return
		}
		if _, err := to.Write(b.ReadOnlyData()); err != nil {
			return
		}
	}
}

// abandon ends a connection so that the other side cannot take it for an orderly end.
func abandon(conn net.Conn) {
	if c, ok := conn.(interface{ Reset() error }); ok {
		_ = c.Reset()
		return
	}
	_ = conn.Close()
}
