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

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// maxRefusal limits how much of an error reply is kept.
	maxRefusal = 16 << 10
	// slotFor is how long an unresponsive member keeps its slot, so that others need not wait.
	slotFor = 250 * time.Millisecond
	// stalledAfter is how long a reply may stop in the middle; the deadline applies if that is
	// longer. A stalled reply ends the response with an error, so it is more generous than the
	// deadline.
	stalledAfter = 10 * time.Second
	// maxWait limits the wait for the next progressBytes of a reply, without the time in which nobody
	// reads. A member cannot prolong a request by sending very little.
	maxWait       = time.Minute
	progressBytes = 64 << 10
)

var (
	errLate    = errors.New("it did not reply in time")
	errStalled = errors.New("it stopped in the middle")
	errClosed  = errors.New("the client no longer reads the reply")
)

// reply is one member's reply: a response writer for the proxy and a response for its reader. The
// reader reads the body of the reply itself if the proxy passes it. Otherwise, one write is buffered:
// the proxy waits until that is read.
type reply struct {
	member string
	// request is the request to the member, sent when.
	request memberRequest
	sent    time.Time
	header  http.Header
	// begun is closed with the status line, or when none will come.
	begun chan struct{}
	body  *io.PipeReader
	out   *io.PipeWriter
	// passed is the body itself, if the proxy has passed it by the time begun is closed.
	passed io.Reader
	// idle limits a pause while somebody reads, 0 is no limit; left is what is left of maxWait, and
	// got how much arrived since it began.
	idle, left time.Duration
	got        int
	// cancel ends the request; gone is closed once the proxy has finished it.
	cancel context.CancelCauseFunc
	gone   chan struct{}

	// onBegin, if not nil, is called with the status line.
	onBegin func()
	once    sync.Once
	// code and err are set once begun is closed.
	code int
	err  error
	// refusal is the body of an error, which is complete once gone is closed; parsed is the Status
	// in it.
	refusal []byte
	parsed  *metav1.Status
}

var (
	_ http.ResponseWriter = (*reply)(nil)
	_ io.Reader           = (*reply)(nil)
)

func newReply(member string, idle time.Duration, cancel context.CancelCauseFunc) *reply {
	r := &reply{
		member: member, header: http.Header{}, begun: make(chan struct{}), gone: make(chan struct{}), cancel: cancel,
		idle: idle, left: maxWait, sent: time.Now(),
	}
	r.body, r.out = io.Pipe()
	return r
}

// Header returns the header, which the proxy writes before the status line.
func (r *reply) Header() http.Header { return r.header }

// WriteHeader takes the status line. Informational ones are dropped.
func (r *reply) WriteHeader(code int) {
	if code >= http.StatusOK {
		r.begin(code, nil)
	}
}

// successful is true for a successful reply, once it has begun.
func (r *reply) successful() bool { return r.code == http.StatusOK || r.code == http.StatusCreated }

// ok is true for a successful read, once the reply has begun.
func (r *reply) ok() bool { return r.code == http.StatusOK && r.err == nil }

// Write waits until the data has been read. It keeps the body of an error response instead, because
// the reader waits longer for other, unresponsive members than this body takes.
func (r *reply) Write(b []byte) (int, error) {
	r.begin(http.StatusOK, nil)
	if r.successful() {
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

// Read reads the body. It aborts a reply that stalls in the middle.
func (r *reply) Read(b []byte) (int, error) {
	if r.idle == 0 {
		return r.readBody(b)
	}
	began := time.Now()
	stalled := time.AfterFunc(min(r.idle, r.left), func() {
		_ = r.out.CloseWithError(errStalled)
		r.cancel(errStalled)
	})
	n, err := r.readBody(b)
	r.left -= time.Since(began)
	if r.got += n; r.got >= progressBytes {
		r.left, r.got = maxWait, 0
	}
	if !stalled.Stop() && errors.Is(err, io.ErrClosedPipe) {
		err = errStalled // Both ends may be closed by then, in any order.
	}
	return n, err
}

func (r *reply) readBody(b []byte) (int, error) {
	<-r.begun
	if r.passed == nil {
		return r.body.Read(b)
	}
	n, err := r.passed.Read(b)
	if err != nil {
		r.passed = nil // A watch keeps the reply of its list, and would keep its buffers.
	}
	return n, err
}

// Flush does nothing, because Write returns only after the data was read.
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

// end is called when the proxy has finished the request; err is the error that ended it.
func (r *reply) end(err error) {
	r.begin(http.StatusBadGateway, err)
	if err != nil {
		r.refusal = nil // A partial message is not shown.
	}
	_ = r.out.CloseWithError(err)
	close(r.gone)
}

// close aborts the reply.
func (r *reply) close() {
	r.cancel(errClosed)
	_ = r.body.CloseWithError(errClosed)
}

// status is the error in an unsuccessful reply, from its Status or its text.
func (r *reply) status() *metav1.Status {
	if r.parsed == nil {
		r.parsed = r.readStatus()
	}
	return r.parsed
}

func (r *reply) readStatus() *metav1.Status {
	other := &metav1.Status{Status: metav1.StatusFailure, Code: int32(r.code), Message: fmt.Sprintf("member %q replied with %d", r.member, r.code)}
	if r.body == nil {
		return other
	}
	if r.err != nil {
		other.Message = fmt.Sprintf("member %q: %v", r.member, r.err)
		return other
	}
	<-r.gone
	var parsed metav1.Status
	if err := json.Unmarshal(r.refusal, &parsed); err == nil && parsed.Kind == "Status" {
		parsed.Code = int32(r.code)
		parsed.Message = untrusted.Excerpt(parsed.Message, maxText)
		return &parsed
	}
	if text := untrusted.Excerpt(string(r.refusal), maxText); text != "" {
		other.Message = text
	}
	return other
}
