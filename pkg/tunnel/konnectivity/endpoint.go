// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// openTime limits the time to reach a target, whatever the server would wait.
const openTime = 30 * time.Second

// endpoint is our agent's end of one stream: it dials what a server asks for.
type endpoint struct {
	*multiplexer
	config *Connector
	//nolint:containedctx // It is the life of the stream, and of all that is dialed for it.
	ctx context.Context
	// drained is called when the server wants another stream in place of this one.
	drained func()
	// ids counts connections; IDs are never reused on a stream.
	ids  atomic.Int64
	open atomic.Int64
	// serving counts the goroutines of dials and connections.
	serving sync.WaitGroup

	// dials guards pending, which cancel dials by their random number.
	dials   sync.Mutex
	pending map[int64]context.CancelFunc
}

// serveEndpoint serves a stream until it and all its connections have ended, and returns the
// reason. When ctx ends it asks the server to use other streams, and waits for connections to end.
func serveEndpoint(ctx context.Context, config *Connector, c *connection, drained func()) error {
	living, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &endpoint{
		multiplexer: newMultiplexer(c.stream, c.info.extended, false, config.QueueLimit, config.unread, config.Metrics.streamMeter()),
		config:      config, ctx: living, drained: drained, pending: map[int64]context.CancelFunc{},
	}
	stop := make(chan struct{})
	stopDraining := context.AfterFunc(ctx, func() {
		defer close(stop)
		e.drain()
	})
	err := e.run(stop, e.handle)
	stopDraining()
	cancel()
	c.close()
	// No dial comes any more, so that all are counted.
	e.wait()
	e.serving.Wait()
	return err
}

// drain asks for no more dials and waits for connections to end, up to DrainTime.
func (e *endpoint) drain() {
	e.out.send(packet{kind: drain})
	ctx, cancel := context.WithTimeout(e.ctx, e.config.DrainTime)
	defer cancel()
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for e.open.Load() > 0 {
		select {
		case <-ticker.C:
		case <-e.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// handle handles one packet of the server.
func (e *endpoint) handle(p packet) error {
	switch p.kind {
	case dialRequest:
		e.dialed(p)
	case dialClose:
		e.cancelDial(p.random)
	case data:
		e.deliver(p)
	case closeRequest:
		e.closed(p)
	case end:
		e.halfClosed(p.connID)
	case credit:
		e.credited(p)
	case drain:
		e.drained()
	}
	return nil
}

func (e *endpoint) closed(p packet) {
	response := packet{kind: closeResponse, connID: p.connID}
	if c := e.conn(p.connID); c != nil {
		c.closedByPeer(p.reason, &response)
		return
	}
	e.meter.foreign(p.kind)
	if p.connID != 0 {
		e.out.send(response) // closed from this side at the same time
	}
}

// dialed starts a dial, unless there are too many connections.
func (e *endpoint) dialed(p packet) {
	if e.open.Add(1) > int64(e.config.MaxConnections) {
		e.open.Add(-1)
		e.refuseDial(p, &tunnel.RefusedError{Code: tunnel.Busy, Message: "all connections of this agent are in use"})
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, openTime)
	e.dials.Lock()
	e.pending[p.random] = cancel
	e.dials.Unlock()
	e.serving.Go(func() {
		defer e.open.Add(-1)
		handle, err := e.reach(ctx, p)
		if !e.cancelDial(p.random) && err == nil {
			err = context.Canceled // by a DIAL_CLS in the meantime
		}
		e.respond(p, handle, err)
	})
}

// cancelDial ends a dial. It returns false if somebody has done so before.
func (e *endpoint) cancelDial(random int64) bool {
	e.dials.Lock()
	cancel, ok := e.pending[random]
	delete(e.pending, random)
	e.dials.Unlock()
	if ok {
		cancel()
	}
	return ok
}

// reach prepares the target of a dial.
func (e *endpoint) reach(ctx context.Context, p packet) (tunnel.Handler, error) {
	began := time.Now()
	target, err := e.target(ctx, p)
	if err != nil {
		return nil, err
	}
	handle, err := target(ctx)
	if err != nil {
		reason := "unknown"
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			reason = "timeout"
			err = &tunnel.RefusedError{Code: tunnel.TimedOut, Message: err.Error()}
		}
		e.config.Metrics.dialFailures.WithLabelValues(reason).Inc()
		return nil, err
	}
	since(e.config.Metrics.dialSeconds, began)
	return handle, nil
}

// target finds the target of a dial. Only our own gateway uses names of targets; other servers use
// addresses, of which most are not allowed.
func (e *endpoint) target(ctx context.Context, p packet) (tunnel.Target, error) {
	switch {
	case e.extended && p.protocol == protocolTarget:
		if target, ok := e.config.Targets[p.address]; ok {
			return target, nil
		}
		return nil, &tunnel.RefusedError{Code: tunnel.UnknownTarget, Message: "this agent serves no target " + p.address}
	case p.protocol != protocolTCP:
		return nil, &tunnel.RefusedError{Code: tunnel.UnknownTarget, Message: "this agent dials by tcp, not by " + p.protocol}
	}
	parsed, err := parseAddress(p.address)
	if err != nil {
		return nil, &tunnel.RefusedError{Code: tunnel.UnknownTarget, Message: err.Error()}
	}
	if apiServer, ok := e.config.Targets[tunnel.APIServer]; ok && slices.ContainsFunc(e.config.APIServer, func(address string) bool {
		known, err := parseAddress(address)
		return err == nil && known == parsed
	}) {
		return apiServer, nil
	}
	found, err := e.config.Allow.resolve(ctx, net.DefaultResolver, p.address)
	if errors.Is(err, errNotAllowed) {
		return nil, &tunnel.RefusedError{Code: tunnel.UnknownTarget, Message: fmt.Sprintf("%s: %v", parsed, err)}
	}
	if err != nil {
		return nil, err
	}
	return tunnel.TCP(found.String()), nil
}

// respond sends the result of a dial to the server, and serves the connection.
func (e *endpoint) respond(p packet, handle tunnel.Handler, err error) {
	if handle == nil {
		e.refuseDial(p, err)
		return
	}
	c := newConn(e.multiplexer, e.ids.Add(1), addr(e.config.Member), addr("gateway"))
	if err != nil || !e.add(c) {
		// The target is already open: its handler closes it, on a dead connection.
		c.over.Store(true)
		_ = c.Reset()
	} else {
		e.out.send(packet{kind: dialResponse, random: p.random, connID: c.id})
	}
	e.config.Metrics.endpoints.Inc()
	defer e.config.Metrics.endpoints.Dec()
	if err := handle(e.ctx, c); err != nil {
		klog.FromContext(e.ctx).V(4).Info("Konnectivity connection ended early", "address", p.address, "reason", err.Error())
		_ = c.Reset()
		return
	}
	_ = c.Close()
}

func (e *endpoint) refuseDial(p packet, err error) {
	response := packet{kind: dialResponse, random: p.random}
	var refused *tunnel.RefusedError
	if errors.As(err, &refused) {
		response.code, response.reason = uint8(refused.Code), printable(refused.Message)
	} else {
		response.code, response.reason = uint8(tunnel.Unreachable), printable(err.Error())
	}
	e.out.send(response)
}
