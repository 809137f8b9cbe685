// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// CountedWriter keeps the code of a response and counts its bytes. Unwrap gives access to the other
// features of the wrapped writer.
type CountedWriter struct {
	http.ResponseWriter
	code  int
	bytes atomic.Int64
}

// Code is the response's code. It is 0 before there is one, and if the connection was hijacked.
func (w *CountedWriter) Code() int { return w.code }

// Bytes is the number of bytes written so far.
func (w *CountedWriter) Bytes() int64 { return w.bytes.Load() }

// WriteHeader keeps the first final code.
func (w *CountedWriter) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *CountedWriter) Write(b []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes.Add(int64(n))
	return n, err
}

// Hijack counts what is written to the connection afterwards.
func (w *CountedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &countedConn{Conn: conn, bytes: &w.bytes}, buffered, nil
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (w *CountedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Status is the code. A hijacked connection counts as 101, because the code of its upgrade is not
// written through this writer.
func (w *CountedWriter) Status() int {
	if w.code == 0 {
		return http.StatusSwitchingProtocols
	}
	return w.code
}
