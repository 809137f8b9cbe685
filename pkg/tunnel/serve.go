// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

const (
	// headerTime limits the wait for the header of a new stream.
	headerTime = 10 * time.Second
	// openTime limits the time to reach a target, whatever the gateway would wait.
	openTime = 30 * time.Second
	// refusalTime is how long a refused stream stays open for the gateway to read the reason.
	refusalTime = 5 * time.Second
)

// server serves the streams of one session on the agent.
type server struct {
	targets map[string]Target
	// data opens data connections; nil if the session has none.
	data dataDialer
	max  int64
	open atomic.Int64
}

// serveStreams serves the session until it and all its streams have ended, and returns the reason.
func serveStreams(ctx context.Context, mux Multiplexer, targets map[string]Target, data dataDialer, maxStreams int) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{targets: targets, data: data, max: int64(maxStreams)}
	var streams sync.WaitGroup
	defer streams.Wait()
	// Reads of streams end with the multiplexer, everything else they wait for with ctx.
	defer mux.Close()
	defer cancel()
	for {
		stream, err := mux.Accept(ctx)
		if err != nil {
			return err
		}
		streams.Go(func() { s.serve(ctx, stream) })
	}
}

// serve serves one stream from its header to its end.
func (s *server) serve(ctx context.Context, stream net.Conn) {
	defer stream.Close()
	defer s.open.Add(-1)
	n := s.open.Add(1)
	if n > 2*s.max {
		// No response either: a flooding peer does not read it.
		abandon(stream)
		return
	}
	h, handle, err := s.accept(ctx, stream, n > s.max)
	if err != nil {
		refuse(stream, err)
		return
	}
	conn, accepted := s.connection(ctx, h, stream)
	defer conn.Close()
	if _, err := stream.Write(encodeResponse(accepted, "")); err != nil {
		// The target is already open: its handler closes it, on a dead stream.
		abandon(conn)
	}
	if err := handle(ctx, conn); err != nil {
		klog.FromContext(ctx).V(4).Info("Tunnel stream ended early", "target", h.target, "reason", err.Error())
		abandon(conn)
	}
}

// accept reads the stream's header and connects its target.
func (s *server) accept(ctx context.Context, stream net.Conn, busy bool) (header, Handler, error) {
	_ = stream.SetDeadline(time.Now().Add(headerTime))
	h, err := readHeader(stream)
	if err != nil {
		return h, nil, err
	}
	_ = stream.SetDeadline(time.Time{})
	if busy {
		return h, nil, &RefusedError{Code: Busy, Message: "all streams of this agent are in use"}
	}
	handle, err := s.reach(ctx, h)
	return h, handle, err
}

// reach prepares the target that the header names.
func (s *server) reach(ctx context.Context, h header) (Handler, error) {
	target, ok := s.targets[h.target]
	if !ok {
		return nil, &RefusedError{Code: UnknownTarget, Message: "this agent serves no target " + h.target}
	}
	limit := openTime
	if h.limit > 0 {
		limit = min(h.limit, openTime)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	handle, err := target(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, &RefusedError{Code: TimedOut, Message: err.Error()}
	}
	return handle, err
}

// refuse responds with the reason, and waits until the gateway has closed. A stream that is closed
// while data still arrives is reset, and the response could be lost with it.
func refuse(stream net.Conn, err error) {
	_ = stream.SetDeadline(time.Now().Add(refusalTime))
	if _, err := stream.Write(refusalResponse(err)); err != nil {
		return
	}
	if half, ok := stream.(halfCloser); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(stream, 1<<20))
}

func refusalResponse(err error) []byte {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return encodeResponse(refused.Code, refused.Message)
	}
	return encodeResponse(Unreachable, err.Error())
}
