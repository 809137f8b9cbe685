// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxRefusal is how much of a reply is kept that is an error.
	maxRefusal = 16 << 10
	// slotFor is how long a member that says nothing may keep one of the places of those
	// that are asked at once: others need not wait for the silent.
	slotFor = 250 * time.Millisecond
	// stalledAfter is for how long a reply may stop in the middle, or for the deadline if
	// that is longer: what was begun is ended with an error then, so it is more.
	stalledAfter = 10 * time.Second
	// maxWait is how long all of a reply may be waited for, not counting the time in which
	// nobody reads: as long as a short request may last.
	maxWait = time.Minute
)

var (
	errSilent  = errors.New("it did not answer in time")
	errStalled = errors.New("it stopped in the middle")
	errClosed  = errors.New("nobody reads the reply any more")
)

// reply is what one member answers, as a response writer for the proxy and a response for
// who reads it. Nothing of its body is held but what one write has: the proxy waits until
// it is read.
type reply struct {
	member string
	header http.Header
	// begun is closed with the status line, or when none will come.
	begun chan struct{}
	body  *io.PipeReader
	out   *io.PipeWriter
	// idle is how long it may say nothing while somebody reads, 0 for ever; left how long
	// in all.
	idle, left time.Duration
	// cancel ends the request; gone is closed once the proxy has left it.
	cancel context.CancelCauseFunc
	gone   chan struct{}

	// onBegin, if not nil, is called with the status line.
	onBegin func()
	once    sync.Once
	// code and err are there once begun is closed.
	code int
	err  error
	// refusal is the body of an error, which is whole once gone is closed; said what status
	// has read in it.
	refusal []byte
	said    *metav1.Status
}

var (
	_ http.ResponseWriter = (*reply)(nil)
	_ io.Reader           = (*reply)(nil)
)

func newReply(member string, idle time.Duration, cancel context.CancelCauseFunc) *reply {
	r := &reply{
		member: member, header: http.Header{}, begun: make(chan struct{}), gone: make(chan struct{}), cancel: cancel,
		idle: idle, left: maxWait,
	}
	r.body, r.out = io.Pipe()
	return r
}

// Header is the header, which the proxy writes before the status line.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader takes the status line. Informational ones are for nobody.
func (r *reply) WriteHeader(code int) {
	if code >= http.StatusOK {
		r.begin(code, nil)
	}
}

// gives is true for a reply that has what was asked for, once it has begun.
func (r *reply) gives() bool { return r.code == http.StatusOK || r.code == http.StatusCreated }

// Write waits until somebody has read. What a refusal says is kept: others that are silent are
// waited for longer than for its end.
func (r *reply) Write(b []byte) (int, error) {
	r.begin(http.StatusOK, nil)
	if r.gives() {
		return r.out.Write(b)
	}
	room := maxRefusal - len(r.refusal)
	if len(b) > room {
		r.refusal = append(r.refusal, b[:room]...)
		return room, io.ErrShortWrite
	}
	r.refusal = append(r.refusal, b...)
	return len(b), nil
}

// Read reads the body. One that stops in the middle is broken off.
func (r *reply) Read(b []byte) (int, error) {
	if r.idle == 0 {
		return r.body.Read(b)
	}
	began := time.Now()
	stalled := time.AfterFunc(min(r.idle, r.left), func() {
		_ = r.out.CloseWithError(errStalled)
		r.cancel(errStalled)
	})
	n, err := r.body.Read(b)
	r.left -= time.Since(began)
	if !stalled.Stop() && errors.Is(err, io.ErrClosedPipe) {
		err = errStalled // Both of its ends are closed by then, in any order.
	}
	return n, err
}

// Flush has nothing to do: what is written has been read.
func (r *reply) Flush() {}

func (r *reply) begin(code int, err error) {
	r.once.Do(func() {
		r.code, r.err = code, err
		close(r.begun)
		if r.onBegin != nil {
			r.onBegin()
		}
	})
}

// end is called when the proxy has left the request; err is what it ended with.
func (r *reply) end(err error) {
	r.begin(http.StatusBadGateway, err)
	if err != nil {
		r.refusal = nil // Half a sentence says nothing.
	}
	_ = r.out.CloseWithError(err)
	close(r.gone)
}

// close gives the reply up.
func (r *reply) close() {
	r.cancel(errClosed)
	_ = r.body.CloseWithError(errClosed)
}

// status is what a reply that is no success says, from its Status or from its text.
func (r *reply) status() *metav1.Status {
	if r.said == nil {
		r.said = r.readStatus()
	}
	return r.said
}

func (r *reply) readStatus() *metav1.Status {
	made := &metav1.Status{Status: metav1.StatusFailure, Code: int32(r.code), Message: fmt.Sprintf("member %q answered %d", r.member, r.code)}
	if r.body == nil {
		return made
	}
	if r.err != nil {
		made.Message = fmt.Sprintf("member %q: %v", r.member, r.err)
		return made
	}
	<-r.gone
	var said metav1.Status
	if err := json.Unmarshal(r.refusal, &said); err == nil && said.Kind == "Status" {
		said.Code = int32(r.code)
		said.Message = printable(said.Message)
		return &said
	}
	if text := printable(string(r.refusal)); text != "" {
		made.Message = text
	}
	return made
}
