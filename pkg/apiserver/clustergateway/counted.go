// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// CountedWriter remembers the code of an answer and counts its bytes. Everything else of
// the writer below is reached by Unwrap.
type CountedWriter struct {
	http.ResponseWriter
	code  int
	bytes atomic.Int64
}

// Code is that of the answer; 0 if there was none yet, or if the connection was hijacked.
func (w *CountedWriter) Code() int { return w.code }

// Bytes is how many were written so far.
func (w *CountedWriter) Bytes() int64 { return w.bytes.Load() }

// WriteHeader remembers the first code that is final.
func (w *CountedWriter) WriteHeader(code int) {
	if w.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write counts.
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

// Write counts.
func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (w *CountedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Status is the code: a hijacked connection has switched protocols without
// saying so here.
func (w *CountedWriter) Status() int {
	if w.code == 0 {
		return http.StatusSwitchingProtocols
	}
	return w.code
}
