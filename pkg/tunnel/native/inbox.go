// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"math/bits"
	"sync"
)

// Sizes of pooled buffers: 4, 8, 16, 32 and 64 KiB.
const (
	smallestChunk = 4 << 10
	chunkClasses  = 5
	largestChunk  = smallestChunk << (chunkClasses - 1)
)

// chunks are the free buffers of the process, by size.
var chunks [chunkClasses]sync.Pool

// chunk is a pooled buffer; the bytes from off to end are unread.
type chunk struct {
	buffer   []byte
	off, end int
	class    int
	next     *chunk
}

// newChunk returns a chunk with room for n bytes, at most largestChunk.
func newChunk(n int) *chunk {
	class := bits.Len(uint(max(n-1, 0)) / smallestChunk)
	if c, ok := chunks[class].Get().(*chunk); ok {
		return c
	}
	return &chunk{buffer: make([]byte, smallestChunk<<class), class: class}
}

func (c *chunk) free() {
	c.off, c.end, c.next = 0, 0, nil
	chunks[c.class].Put(c)
}

func (c *chunk) unread() []byte { return c.buffer[c.off:c.end] }

// inbox holds a stream's unread data. The stream's lock guards it. The reader may read the unread
// bytes of head without the lock, because nobody changes them.
type inbox struct {
	head, tail *chunk
	size       int
}

// add copies p to the end. A frame of one byte costs one byte and not a chunk, as long as the last
// chunk has room.
func (b *inbox) add(p []byte) {
	b.size += len(p)
	if b.tail == nil || len(b.tail.buffer)-b.tail.end < len(p) {
		b.push(newChunk(len(p)))
	}
	b.tail.end += copy(b.tail.buffer[b.tail.end:], p)
}

// put appends a chunk of n bytes and owns it.
func (b *inbox) put(c *chunk, n int) {
	c.end = n
	b.size += n
	b.push(c)
}

func (b *inbox) push(c *chunk) {
	if b.tail == nil {
		b.head, b.tail = c, c
		return
	}
	b.tail.next, b.tail = c, c
}

// drop removes the first n bytes, which the head holds.
func (b *inbox) drop(n int) {
	b.size -= n
	b.head.off += n
	if b.head.off < b.head.end {
		return
	}
	read := b.head
	b.head = read.next
	if b.head == nil {
		b.tail = nil
	}
	read.free()
}

// clear removes everything and returns how much that was.
func (b *inbox) clear() int {
	n := b.size
	for c := b.head; c != nil; {
		next := c.next
		c.free()
		c = next
	}
	*b = inbox{}
	return n
}
