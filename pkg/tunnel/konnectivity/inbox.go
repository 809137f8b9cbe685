// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"os"
	"sync"

	"google.golang.org/grpc/mem"

	"fleetgate.io/fleetgate/pkg/tunnel/budget"
)

const (
	// bufferCost is the overhead with which a queued buffer is counted.
	bufferCost = 256
	// smallPayload is the largest payload that is copied into a shared buffer, so that a flood of
	// tiny packets does not cost more memory than its bytes.
	smallPayload = 1 << 10
	// gather is the size of the buffers for such payloads.
	gather = 4 << 10
)

// inbox holds what a connection has received and nobody has read yet. put never waits, because its
// goroutine serves other connections too.
type inbox struct {
	deadline deadline
	// ready has room for one: something has changed for a reader.
	ready chan struct{}
	// drained has room for one: a reader has made room.
	drained chan struct{}
	unread  *budget.Budget

	// mu guards the following fields.
	mu      sync.Mutex
	buffers mem.BufferSlice
	// queued is the counted size of the buffers.
	queued int
	// gathers is true if the last buffer is ours and takes small payloads.
	gathers bool
	// err is what a reader gets after the buffers.
	err error
}

// count counts what is queued; mu is held.
func (q *inbox) count(change int) {
	q.queued += change
	q.unread.Add(change)
}

// put queues a payload and owns its references. It returns false if that would exceed limit or the
// budget. Data after the end is dropped.
func (q *inbox) put(payload mem.BufferSlice, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		payload.Free()
		return true
	}
	size := payload.Len()
	if q.queued > 0 && q.queued+size > limit || q.queued > budget.Floor && q.unread.Exceeded() {
		return false
	}
	if size <= smallPayload {
		q.gather(payload, size)
	} else {
		q.buffers = append(q.buffers, payload...)
		q.count(bufferCost * len(payload))
		q.gathers = false
	}
	q.count(size)
	notify(q.ready)
	return true
}

// gather appends a small payload to those gathered before.
func (q *inbox) gather(payload mem.BufferSlice, size int) {
	var last mem.SliceBuffer
	if q.gathers && len(q.buffers) > 0 {
		last = q.buffers[len(q.buffers)-1].(mem.SliceBuffer)
	}
	if last == nil || cap(last)-len(last) < size {
		// A single packet gets only the room that it needs.
		room := size
		if len(q.buffers) > 0 {
			room = gather
		}
		last = make(mem.SliceBuffer, 0, room)
		q.buffers = append(q.buffers, last)
		q.count(bufferCost)
		q.gathers = true
	}
	for _, b := range payload {
		last = append(last, b.ReadOnlyData()...)
	}
	q.buffers[len(q.buffers)-1] = last
	payload.Free()
}

// finish gives readers err once they have read the queued data.
func (q *inbox) finish(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	notify(q.ready)
	notify(q.drained)
}

// fail gives readers err now.
func (q *inbox) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buffers.Free()
	q.count(-q.queued)
	q.buffers, q.gathers, q.err = nil, false, err
	notify(q.ready)
	notify(q.drained)
}

// read implements Read of a net.Conn.
func (q *inbox) read(p []byte) (n int, err error) {
	err = q.wait(func() (bool, error) {
		n, err = q.take(p)
		return n > 0 || len(p) == 0, err
	})
	return n, err
}

// wait tries until something is done, fails, or the deadline has passed.
func (q *inbox) wait(try func() (done bool, err error)) error {
	for {
		passed := q.deadline.done()
		if isClosed(passed) {
			return os.ErrDeadlineExceeded
		}
		if done, err := try(); done || err != nil {
			return err
		}
		select {
		case <-q.ready:
		case <-passed:
		}
	}
}

// take copies what fits and returns an error only when there was nothing.
func (q *inbox) take(p []byte) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.buffers) > 0 && n < len(p) {
		read, rest := mem.ReadUnsafe(p[n:], q.buffers[0])
		n += read
		q.count(-read)
		if rest != nil {
			q.buffers[0] = rest
			break
		}
		q.buffers[0] = nil
		q.buffers = q.buffers[1:]
		q.count(-bufferCost)
	}
	return n, q.taken(n > 0)
}

// taken signals what a reader has left, and returns the end if it got nothing. mu is held.
func (q *inbox) taken(something bool) error {
	if len(q.buffers) == 0 {
		q.buffers, q.gathers = nil, false
	}
	if q.err != nil || len(q.buffers) > 0 {
		notify(q.ready) // for a second reader
	}
	notify(q.drained)
	if something {
		return nil
	}
	return q.err
}

// notify fills a channel that has room for one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
