// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// streamParameter is the query parameter for rows in the order of their arrival.
	streamParameter = "stream"
	// flushAfter is how long arrived rows may wait for more.
	flushAfter = 50 * time.Millisecond
)

// streamOf says whether the caller wants a stream, and removes the parameter from the query.
func (x *exchange) streamOf() (bool, error) {
	text := x.query.Get(streamParameter)
	x.query.Del(streamParameter)
	if text == "" {
		return false, nil
	}
	streams, err := strconv.ParseBool(text)
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("%s=%q is neither true nor false", streamParameter, untrusted.Excerpt(text, maxText)))
	}
	return streams, nil
}

// streamed is a response whose rows are written in the order of their arrival.
type streamed struct {
	w http.ResponseWriter
	x *exchange

	mu sync.Mutex // guards the following fields
	// out encodes to buffered, which writes to w.
	out      *splice.Writer
	buffered *bufio.Writer
	flushed  time.Time
	read     versions
	missing  missingMembers
	// good counts members that returned a list.
	good int
	// broken is the first reply that broke off.
	broken error
}

// stream writes the items of all members as they arrive. It names missing members at its end,
// because the headers have been sent by then.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, x *exchange, requests []memberRequest) error {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	s := &streamed{w: w, x: x, buffered: bufio.NewWriterSize(w, writeSize), read: versions{}, flushed: time.Now()}
	s.out = splice.NewWriter(s.buffered, viewv1alpha1.LabelMember, x.view.qualified)
	s.missing.total = len(requests)
	plainHeaders(w.Header())
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var group sync.WaitGroup
	for _, reply := range f.send(ctx, requests) {
		group.Go(func() {
			if err := s.add(ctx, reply); err != nil {
				s.breakOff(badGateway(reply.member, err))
				cancel()
			}
		})
	}
	group.Wait()
	switch {
	case r.Context().Err() != nil:
		return abortOnError(context.Cause(ctx))
	case s.broken != nil && s.out.Items == 0:
		return s.broken
	case s.broken != nil:
		panic(http.ErrAbortHandler)
	case s.good == 0:
		return x.none(&s.missing)
	}
	metadata := splice.Metadata{ResourceVersion: h.cursors.publish(s.read, x.members), Warnings: s.missing.warnings(x.deadline, x.what())}
	if err := s.out.Close(metadata); err != nil {
		return abortOnError(err)
	}
	return abortOnError(s.buffered.Flush())
}

func (s *streamed) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
}

// add writes a member's items, in between those of others.
func (s *streamed) add(ctx context.Context, from *reply) error {
	select {
	case <-from.begun:
	case <-ctx.Done():
		return nil
	}
	if !from.ok() {
		s.without(from)
		//lint:ignore nilerr A warning at the end of the response reports it.
		return nil
	}
	written, err := s.items(from)
	if written > 0 || !splice.IsMalformed(err) {
		return err
	}
	from.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing.malformed(from.member, err)
	return nil
}

// items writes a member's items, and returns how many were written.
func (s *streamed) items(from *reply) (written int, err error) {
	in := splice.NewReader(from)
	if err := in.Open(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.missing.warned(from.header)
	restore := s.out.Save()
	marker, err := s.out.Marker(from.member, in)
	if err != nil {
		restore()
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	var marked []byte
	for {
		item, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			marked, err = marker.Mark(marked[:0], item)
		}
		if err == nil {
			err = s.item(marked)
		}
		if err != nil {
			return written, err
		}
		written++
	}
	s.mu.Lock()
	s.good++
	s.read.set(from.member, in.Metadata.ResourceVersion)
	err = s.out.End(in)
	s.mu.Unlock()
	if err != nil {
		return written, err
	}
	return written, s.item(nil)
}

// item writes an item, or flushes after the last, which is nil.
func (s *streamed) item(marked []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if marked != nil {
		if err := s.out.Marked(marked); err != nil {
			return err
		}
	}
	if now := time.Now(); s.out.Items > 0 && (marked == nil || now.Sub(s.flushed) > flushAfter) {
		s.flushed = now
		if err := s.buffered.Flush(); err != nil {
			return err
		}
		_ = http.NewResponseController(s.w).Flush() // A writer that cannot flush sends it later.
	}
	return nil
}

// without records a member that returned nothing.
func (s *streamed) without(of *reply) {
	of.status() // It is read before others have to wait.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing.without(of)
}
