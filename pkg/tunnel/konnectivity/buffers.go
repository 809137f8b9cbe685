// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"sync"

	"google.golang.org/grpc/mem"
)

// bufferPool is gRPC's pool of buffers without clearing them. Every user here fills a buffer before
// it is read, and clearing took a seventh of the CPU of a download.
type bufferPool struct{ tiers [3]tier }

type tier struct {
	size int
	free sync.Pool
}

var _ mem.BufferPool = (*bufferPool)(nil)

// newBufferPool has the sizes of small packets, of HTTP/2's frames and of blocks.
func newBufferPool() *bufferPool {
	return &bufferPool{tiers: [3]tier{{size: 4 << 10}, {size: 16 << 10}, {size: block}}}
}

// Get returns a buffer of that length with arbitrary content.
func (p *bufferPool) Get(length int) *[]byte {
	for i := range p.tiers {
		if length > p.tiers[i].size {
			continue
		}
		if b, ok := p.tiers[i].free.Get().(*[]byte); ok {
			*b = (*b)[:length]
			return b
		}
		b := make([]byte, length, p.tiers[i].size)
		return &b
	}
	b := make([]byte, length)
	return &b
}

// Put returns a buffer to the pool. A buffer of another size is left to the garbage collector.
func (p *bufferPool) Put(b *[]byte) {
	for i := range p.tiers {
		if cap(*b) == p.tiers[i].size {
			p.tiers[i].free.Put(b)
			return
		}
	}
}

// buffers is shared by all connections of the process.
var buffers = newBufferPool()
