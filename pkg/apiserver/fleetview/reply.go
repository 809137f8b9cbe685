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
	// maxRefusal is how much of a reply is read that is an error.
	maxRefusal = 64 << 10
	// slotFor is how long a member that says nothing may keep one of the places of those
	// that are asked at once: others need not wait for the silent.
	slotFor = 250 * time.Millisecond
)

var (
	errSilent = errors.New("it did not answer in time")
	errClosed = errors.New("nobody reads the reply any more")
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
	// cancel ends the request; gone is closed once the proxy has left it.
	cancel context.CancelCauseFunc
	gone   chan struct{}

	// onBegin, if not nil, is called with the status line.
	onBegin func()
	once    sync.Once
	// code and err are there once begun is closed.
	code int
	err  error
	// said is what status has read, for who asks after the body is gone.
	said *metav1.Status
}

var _ http.ResponseWriter = (*reply)(nil)

func newReply(member string, cancel context.CancelCauseFunc) *reply {
	r := &reply{member: member, header: http.Header{}, begun: make(chan struct{}), gone: make(chan struct{}), cancel: cancel}
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

// Write waits until somebody has read.
func (r *reply) Write(b []byte) (int, error) {
	r.begin(http.StatusOK, nil)
	return r.out.Write(b)
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
	if r.said != nil {
		return r.said
	}
	made := &metav1.Status{Status: metav1.StatusFailure, Code: int32(r.code), Message: fmt.Sprintf("member %q answered %d", r.member, r.code)}
	if r.body == nil {
		return made
	}
	if r.err != nil {
		made.Message = fmt.Sprintf("member %q: %v", r.member, r.err)
		return made
	}
	content, err := io.ReadAll(io.LimitReader(r.body, maxRefusal))
	if err != nil {
		return made
	}
	var said metav1.Status
	if err := json.Unmarshal(content, &said); err == nil && said.Kind == "Status" {
		said.Code = int32(r.code)
		said.Message = printable(said.Message)
		return &said
	}
	if text := printable(string(content)); text != "" {
		made.Message = text
	}
	return made
}
