// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
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
)

const (
	// streamParameter is the query's: rows are wanted as they come.
	streamParameter = "stream"
	// flushAfter is how long rows that came may wait for more.
	flushAfter = 50 * time.Millisecond
)

// streamOf says whether rows are wanted as they come, and takes that out of the query.
func (x *exchange) streamOf() (bool, error) {
	text := x.query.Get(streamParameter)
	x.query.Del(streamParameter)
	if text == "" {
		return false, nil
	}
	streams, err := strconv.ParseBool(text)
	if err != nil {
		return false, apierrors.NewBadRequest(fmt.Sprintf("%s=%q is neither true nor false", streamParameter, printable(text)))
	}
	return streams, nil
}

// streamed is an answer whose rows are written in the order in which they come.
type streamed struct {
	w http.ResponseWriter
	x *exchange

	mu      sync.Mutex // guards what follows
	out     *splice.Writer
	flushed time.Time
	read    versions
	tally   tally
	// good counts members that gave a list.
	good int
	// broken is the first reply that broke off.
	broken error
}

// stream answers with the items of all members as they come. Who is not in the answer is said
// at its end: headers are out by then.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, x *exchange, questions []question) error {
	f := h.newFanout(r, x.request.view, x.deadline)
	defer f.close()
	s := &streamed{w: w, x: x, out: splice.NewWriter(w, viewv1alpha1.LabelMember, x.view.qualified), read: versions{}, flushed: time.Now()}
	s.tally.asked = len(questions)
	plainHeaders(w.Header())
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var group sync.WaitGroup
	for _, reply := range f.ask(ctx, questions) {
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
		return ignoreGone(context.Cause(ctx))
	case s.broken != nil && s.out.Items == 0:
		return s.broken
	case s.broken != nil:
		panic(http.ErrAbortHandler)
	case s.good == 0:
		return x.none(&s.tally)
	}
	metadata := splice.Metadata{ResourceVersion: s.read.encode(x.members), Warnings: s.tally.warnings(x.deadline, x.what())}
	return ignoreGone(s.out.Close(metadata))
}

func (s *streamed) breakOff(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.broken = err
	}
}

// add writes what a member gives, in between what others give.
func (s *streamed) add(ctx context.Context, from *reply) error {
	select {
	case <-from.begun:
	case <-ctx.Done():
		return nil
	}
	if from.code != http.StatusOK || from.err != nil {
		s.without(from)
		//lint:ignore nilerr It is said at the end of the answer.
		return nil
	}
	in := splice.NewReader(from)
	if err := in.Open(); err != nil {
		return err
	}
	s.mu.Lock()
	s.good++
	s.tally.say(from.header)
	marker, err := s.out.Marker(from.member, in)
	s.mu.Unlock()
	if err != nil {
		return err
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
			return err
		}
	}
	s.mu.Lock()
	s.read.set(from.member, in.Metadata.ResourceVersion)
	err = s.out.End(in)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.item(nil)
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
		_ = http.NewResponseController(s.w).Flush() // Who cannot be flushed to gets it later.
	}
	return nil
}

// without notes a member that gave nothing.
func (s *streamed) without(of *reply) {
	of.status() // It is read before others have to wait.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.without(of)
}
