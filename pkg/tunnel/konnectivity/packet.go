// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// packetType is the field `type` of upstream's message Packet, and two of our own that are sent
// only to a peer that announced support for them.
type packetType int32

const (
	dialRequest packetType = iota
	dialResponse
	closeRequest
	closeResponse
	data
	dialClose
	drain

	// credit lets the peer send that many more bytes on one connection.
	credit packetType = 100
	// end closes one half of a connection.
	end packetType = 101

	// nothing is a packet without meaning here: of an unknown type, or with a payload that does not
	// match its type. Such packets are ignored, so that later versions of either side can send
	// them.
	nothing packetType = -1
)

func (t packetType) String() string {
	names := [...]string{"DIAL_REQ", "DIAL_RSP", "CLOSE_REQ", "CLOSE_RSP", "DATA", "DIAL_CLS", "DRAIN"}
	switch {
	case t >= 0 && int(t) < len(names):
		return names[t]
	case t == credit:
		return "CREDIT"
	case t == end:
		return "END"
	}
	return "UNKNOWN"
}

// Fields of Packet and of the messages in it. Ours have numbers far from upstream's; a reader that
// does not know them skips them.
const (
	fieldType          protowire.Number = 1
	fieldDialRequest   protowire.Number = 2
	fieldDialResponse  protowire.Number = 3
	fieldData          protowire.Number = 4
	fieldCloseRequest  protowire.Number = 5
	fieldCloseResponse protowire.Number = 6
	fieldCloseDial     protowire.Number = 7
	fieldDrain         protowire.Number = 8
	fieldOurs          protowire.Number = 100

	fieldCode   protowire.Number = 100
	fieldReason protowire.Number = 100
)

// maxText limits each kept text of a packet, in bytes; longer ones are cut. maxPacket limits its
// bytes on the wire anyway.
const maxText = 1024

// maxPacket limits a packet on the wire. It is gRPC's default for receiving, so every peer can rely
// on it.
const maxPacket = 4 << 20

// packet is upstream's message Packet, flattened: which fields count depends on the type.
type packet struct {
	kind packetType
	// random identifies dials until they have a connID.
	random int64
	// connID names a connection within one stream of AgentService or ProxyService. Zero is none.
	connID            int64
	protocol, address string
	// reason is why a dial failed, or that a connection was reset.
	reason string
	// code refines reason, between our own ends.
	code uint8
	// amount of bytes that a credit gives.
	amount int64
	// payload is the content of DATA; never empty in a packet that is sent.
	payload mem.BufferSlice
}

// encode returns the packet's wire format without its payload, which follows it: the payload is
// always the last field.
func (p *packet) encode() []byte {
	var body []byte
	field := fieldOurs
	switch p.kind {
	case dialRequest:
		field = fieldDialRequest
		body = appendText(body, 1, p.protocol)
		body = appendText(body, 2, p.address)
		body = appendInt(body, 3, p.random)
	case dialResponse:
		field = fieldDialResponse
		body = appendText(body, 1, p.reason)
		body = appendInt(body, 2, p.connID)
		body = appendInt(body, 3, p.random)
		body = appendInt(body, fieldCode, int64(p.code))
	case closeRequest:
		field = fieldCloseRequest
		body = appendInt(body, 1, p.connID)
		body = appendText(body, fieldReason, p.reason)
	case closeResponse:
		field = fieldCloseResponse
		body = appendText(body, 1, p.reason)
		body = appendInt(body, 2, p.connID)
	case data:
		return p.encodeData()
	case dialClose:
		field = fieldCloseDial
		body = appendInt(body, 1, p.random)
	case drain:
		field = fieldDrain
	case credit, end:
		body = appendInt(body, 1, p.connID)
		body = appendInt(body, 2, p.amount)
	}
	b := appendInt(nil, fieldType, int64(p.kind))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, body)
}

func (p *packet) encodeData() []byte {
	size := p.payload.Len()
	const room = 32 // two tags, two lengths, a type and a connID fit
	inner := make([]byte, 0, room)
	inner = appendInt(inner, 1, p.connID)
	inner = protowire.AppendTag(inner, 3, protowire.BytesType)
	inner = protowire.AppendVarint(inner, uint64(size))
	b := make([]byte, 0, room+len(inner))
	b = appendInt(b, fieldType, int64(data))
	b = protowire.AppendTag(b, fieldData, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(inner)+size))
	return append(b, inner...)
}

// Proto3 omits zero values.
func appendInt(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

func appendText(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

var errWire = errors.New("not a packet of this protocol")

// decode reads a packet, whose payload holds its own references into wire. A packet without meaning
// is no error; an invalid message is.
func (p *packet) decode(wire mem.BufferSlice) error {
	*p = packet{kind: nothing}
	if p.decodeData(wire) {
		return nil
	}
	// The rest is small, or comes from a peer that orders fields differently.
	return p.decodeAny(wire.Materialize())
}

// decodeData reads DATA as every known encoder writes it, without copying: type and connID first,
// then the payload up to the end. It returns false for any other form.
func (p *packet) decodeData(wire mem.BufferSlice) bool {
	if len(wire) == 0 {
		return false
	}
	connID, header, ok := dataHeader(wire[0].ReadOnlyData(), wire.Len())
	if !ok {
		return false
	}
	p.kind, p.connID = data, connID
	p.payload = make(mem.BufferSlice, 0, len(wire))
	for _, b := range wire {
		if header >= b.Len() {
			header -= b.Len()
			continue
		}
		p.payload = append(p.payload, b.Slice(header, b.Len()))
		header = 0
	}
	return true
}

// dataHeader reads the front of a DATA packet of total bytes and returns its length. ok is false if
// the packet has another form, or is not DATA.
func dataHeader(b []byte, total int) (connID int64, length int, ok bool) {
	front := [...]byte{byte(fieldType) << 3, byte(data), byte(fieldData)<<3 | byte(protowire.BytesType)}
	if len(b) < len(front) || [3]byte(b) != front {
		return 0, 0, false
	}
	at := len(front)
	size, n := protowire.ConsumeVarint(b[at:])
	at += max(n, 0)
	if n < 0 || size != uint64(total-at) || len(b) <= at || b[at] != 1<<3 {
		return 0, 0, false
	}
	id, n := protowire.ConsumeVarint(b[at+1:])
	at += 1 + max(n, 0)
	if n < 0 || len(b) <= at || b[at] != 3<<3|byte(protowire.BytesType) {
		return 0, 0, false
	}
	size, n = protowire.ConsumeVarint(b[at+1:])
	at += 1 + max(n, 0)
	if n < 0 || size == 0 || size != uint64(total-at) {
		return 0, 0, false
	}
	return int64(id), at, true
}

func (p *packet) decodeAny(b []byte) error {
	kind, payload := int64(dialRequest), protowire.Number(0)
	err := eachField(b, func(field protowire.Number, number uint64, body []byte) error {
		switch {
		case field == fieldType && body == nil:
			kind = int64(int32(number))
		case body != nil && (field >= fieldDialRequest && field <= fieldDrain || field == fieldOurs):
			if field != payload {
				*p = packet{} // of a oneof, the last one counts
			}
			payload = field
			err := p.decodePayload(field, body)
			if err != nil && field == fieldOurs {
				payload = 0 // another extension's field of that number is not an error
				return nil
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	p.kind = meaning(packetType(kind), payload)
	if p.payload.Len() == 0 {
		p.payload = nil // upstream's library treats it as an end; it is none
	}
	return nil
}

// meaning checks that type and payload fit together. A dial's type is zero and so absent from the
// wire: only its payload distinguishes it from an empty packet.
func meaning(kind packetType, payload protowire.Number) packetType {
	payloads := map[packetType]protowire.Number{
		dialRequest: fieldDialRequest, dialResponse: fieldDialResponse, closeRequest: fieldCloseRequest,
		closeResponse: fieldCloseResponse, data: fieldData, dialClose: fieldCloseDial,
		credit: fieldOurs, end: fieldOurs,
	}
	if kind == drain {
		return drain // it has no content, and need not have an empty payload
	}
	if want, known := payloads[kind]; !known || want != payload {
		return nothing
	}
	return kind
}

func (p *packet) decodePayload(message protowire.Number, b []byte) error {
	return eachField(b, func(field protowire.Number, number uint64, body []byte) error {
		switch message {
		case fieldDialRequest:
			setText(&p.protocol, field == 1, body)
			setText(&p.address, field == 2, body)
			setInt(&p.random, field == 3, number, body)
		case fieldDialResponse:
			setText(&p.reason, field == 1, body)
			setInt(&p.connID, field == 2, number, body)
			setInt(&p.random, field == 3, number, body)
			if field == fieldCode && body == nil {
				p.code = uint8(min(number, 0xff))
			}
		case fieldCloseRequest:
			setInt(&p.connID, field == 1, number, body)
			setText(&p.reason, field == fieldReason, body)
		case fieldCloseResponse:
			setText(&p.reason, field == 1, body)
			setInt(&p.connID, field == 2, number, body)
		case fieldData:
			setInt(&p.connID, field == 1, number, body)
			if field == 3 && body != nil {
				p.payload = mem.BufferSlice{mem.SliceBuffer(body)}
			}
		case fieldCloseDial:
			setInt(&p.random, field == 1, number, body)
		case fieldOurs:
			setInt(&p.connID, field == 1, number, body)
			setInt(&p.amount, field == 2, number, body)
		}
		return nil
	})
}

func setInt(to *int64, is bool, number uint64, body []byte) {
	if is && body == nil {
		*to = int64(number)
	}
}

func setText(to *string, is bool, body []byte) {
	if is && body != nil {
		*to = printable(string(body[:min(len(body), maxText)]))
	}
}

// eachField calls visit with each field of a message: with its number, or with its body, which is
// not nil then. Fields of other kinds are skipped.
func eachField(b []byte, visit func(field protowire.Number, number uint64, body []byte) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", errWire, protowire.ParseError(n))
		}
		b = b[n:]
		var number uint64
		var body []byte
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			body, n = protowire.ConsumeBytes(b)
			if body == nil {
				body = []byte{}
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: field %d: %w", errWire, field, protowire.ParseError(n))
		}
		b = b[n:]
		if kind != protowire.VarintType && kind != protowire.BytesType {
			continue
		}
		if err := visit(field, number, body); err != nil {
			return err
		}
	}
	return nil
}

// printable makes a peer's text fit for logs and errors.
func printable(text string) string { return tunnel.Printable(text, maxText) }
