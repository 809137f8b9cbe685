// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// codec encodes packets for gRPC as protobuf, as its name tells the peer, but without copying
// payloads.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// Name is that of the encoding on the wire.
func (codec) Name() string { return "proto" }

// Marshal passes the packet's references to its payload to gRPC.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*packet)
	if !ok {
		return nil, fmt.Errorf("encoding a %T as a packet", v)
	}
	out := make(mem.BufferSlice, 1, 1+len(p.payload))
	out[0] = mem.SliceBuffer(p.encode())
	return append(out, p.payload...), nil
}

// Unmarshal fills in the packet.
func (codec) Unmarshal(wire mem.BufferSlice, v any) error {
	p, ok := v.(*packet)
	if !ok {
		return fmt.Errorf("decoding a packet into a %T", v)
	}
	return p.decode(wire)
}
