// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// pipeBuffer is the size of the pooled buffers: one full frame of the multiplexer.
const pipeBuffer = 64 << 10

// resetGrace is how long one side of a pipe may take what has arrived from the other side after
// that has failed. TCP would discard it at once.
const resetGrace = 500 * time.Millisecond

// pipeBuffers is shared by all pipes of the process.
var pipeBuffers = sync.Pool{New: func() any { return new([pipeBuffer]byte) }}

// TCP is a target that pipes streams to a TCP address, as "host:port". The name is resolved and
// dialed for every stream.
func TCP(address string) Target {
	var dialer net.Dialer
	return Dial(func(ctx context.Context) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", address)
	})
}

// Dial is a target that pipes streams to connections of dial. The stream is accepted only when dial
// has succeeded, so the gateway gets the error of an unreachable target at once.
func Dial(dial func(ctx context.Context) (net.Conn, error)) Target {
	return func(ctx context.Context) (Handler, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, stream net.Conn) error {
			return pipe(ctx, stream, conn)
		}, nil
	}
}

// pipe copies both ways until both directions have ended, then closes a and b. The end of one
// direction is passed on as a half close, a failure as a reset, so each side sees what it would see
// without a tunnel.
func pipe(ctx context.Context, a, b net.Conn) error {
	stop := context.AfterFunc(ctx, func() {
		abandon(a)
		abandon(b)
	})
	defer stop()
	limitAfterFailure(a, b)
	limitAfterFailure(b, a)
	var back error
	var copies sync.WaitGroup
	copies.Go(func() { back = move(a, b) })
	forth := move(b, a)
	copies.Wait()
	_ = a.Close()
	_ = b.Close()
	return errors.Join(forth, back)
}

// limitAfterFailure ends the other side soon after a stream has failed. A blocked write to the other
// side cannot notice the failure by itself.
func limitAfterFailure(stream, other net.Conn) {
	onFailure(stream, func() { _ = other.SetDeadline(time.Now().Add(resetGrace)) })
}

// failing is a stream that reports its failure without a read or write; see [native.Stream.OnFailure].
type failing interface{ OnFailure(f func()) }

// onFailure calls f when the connection fails, if that can report it.
func onFailure(conn net.Conn, f func()) {
	if c, ok := conn.(failing); ok {
		c.OnFailure(f)
	}
}

// move copies from src to dst until src ends.
func move(dst, src net.Conn) error {
	if err := copyPooled(dst, src); err != nil {
		abandon(src)
		abandon(dst)
		if errors.Is(err, net.ErrClosed) {
			return nil // the other direction has failed and reports the error
		}
		return fmt.Errorf("piping from %s to %s: %w", src.RemoteAddr(), dst.RemoteAddr(), err)
	}
	if half, ok := dst.(halfCloser); ok {
		_ = half.CloseWrite()
		return nil
	}
	// Without half close, only a close can signal the end.
	_ = dst.Close()
	return nil
}

// copier is a stream that copies between the connection and its frames without another buffer.
type copier interface {
	io.ReaderFrom
	io.WriterTo
	Reset() error
}

func copyPooled(dst io.Writer, src io.Reader) error {
	if stream, ok := dst.(copier); ok {
		_, err := stream.ReadFrom(src)
		return err
	}
	if stream, ok := src.(copier); ok {
		_, err := stream.WriteTo(dst)
		return err
	}
	buffer := pipeBuffers.Get().(*[pipeBuffer]byte)
	defer pipeBuffers.Put(buffer)
	for {
		n, err := src.Read(buffer[:])
		if n > 0 {
			if _, err := dst.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
