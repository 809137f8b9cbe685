// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// dataConn is a data connection, at either end. The bytes of a stream are on TCP, without frames and
// without encryption of ours. The stream stays open and carries no data: it fails with its session,
// and its end tells an orderly end from that of a killed process. Reads and writes are those of the
// TCP connection, so io.Copy to or from another one stays in the kernel.
type dataConn struct {
	*net.TCPConn
	stream net.Conn
	failed atomic.Bool
}

var _ copier = (*dataConn)(nil)

// newDataConn owns both connections.
func newDataConn(tcp *net.TCPConn, stream net.Conn) *dataConn {
	c := &dataConn{TCPConn: tcp, stream: stream}
	c.OnFailure(func() {})
	return c
}

// setKeepAlive detects a lost connection as fast as a session does, and keeps NAT from forgetting it.
func setKeepAlive(tcp *net.TCPConn) error {
	return tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3})
}

// OnFailure calls f when the stream fails, and ends the connection after the reader has had time for
// what has arrived.
func (c *dataConn) OnFailure(f func()) {
	onFailure(c.stream, func() {
		c.failed.Store(true)
		time.AfterFunc(resetGrace, func() { abandon(c.TCPConn) })
		f()
	})
}

// Read returns io.EOF only if the other side has ended this direction.
func (c *dataConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	return n, c.reason(err)
}

// ReadFrom copies in the kernel if src is a TCP connection.
func (c *dataConn) ReadFrom(src io.Reader) (int64, error) {
	n, err := c.TCPConn.ReadFrom(src)
	return n, c.reason(err)
}

// WriteTo copies in the kernel if dst is a TCP connection.
func (c *dataConn) WriteTo(dst io.Writer) (int64, error) {
	n, err := c.TCPConn.WriteTo(dst)
	if err == nil {
		err = c.reason(io.EOF)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (c *dataConn) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	return n, c.reason(err)
}

// reason returns why the connection has ended. The kernel ends the connections of a killed process
// too: only the stream knows whether the other side meant it.
func (c *dataConn) reason(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		_, err = c.stream.Read(make([]byte, 1))
		if err == nil {
			return errDataInStream
		}
		return err
	case errors.Is(err, net.ErrClosed) && c.failed.Load():
		// A direction that has ended would hide the failure of the other one.
		if _, failure := c.stream.Write(nil); failure != nil {
			return failure
		}
	}
	return err
}

// errDataInStream is returned if the other side uses both connections.
var errDataInStream = errors.New("data arrived in a stream that has a data connection")

// CloseWrite ends the direction to the other side.
func (c *dataConn) CloseWrite() error {
	return errors.Join(c.TCPConn.CloseWrite(), closeWrite(c.stream))
}

// Close ends both directions.
func (c *dataConn) Close() error {
	return errors.Join(c.TCPConn.Close(), c.stream.Close())
}

// Reset abandons the connection.
func (c *dataConn) Reset() error {
	abandon(c.TCPConn)
	abandon(c.stream)
	return nil
}
