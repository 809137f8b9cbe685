// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"encoding/binary"
	"fmt"
)

// kind is the type of a frame. Readers ignore unknown kinds from firstOptional on, so that later
// versions can add some.
type kind byte

// The kinds of SPEC.md, "Frames".
const (
	// kindOpen begins a stream; the payload is its first data.
	kindOpen kind = 1
	kindData kind = 2
	// kindEnd closes one direction.
	kindEnd kind = 3
	// kindReset abandons a stream, or, after kindEnd, says that nobody reads it.
	kindReset kind = 4
	// kindCredit lets the other side send more; the payload is the number of bytes.
	kindCredit kind = 5
	kindPing   kind = 6
	kindPong   kind = 7
	// kindGoAway asks for no more streams.
	kindGoAway kind = 8
	// kindInfo is a message about the session itself; the payload is the user's.
	kindInfo kind = 9

	firstOptional kind = 64
)

const (
	headerSize = 8
	// maxPayload makes a full frame, with its header, four full TLS records, and limits how long a
	// bulk stream delays others.
	maxPayload = 64<<10 - headerSize
	pingSize   = 8
	creditSize = 4
)

// frame is a frame's header.
type frame struct {
	kind   kind
	stream uint32
	length int
}

// put writes the header into the first headerSize bytes of b.
func (f frame) put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(f.length)<<8|uint32(f.kind))
	binary.BigEndian.PutUint32(b[4:], f.stream)
}

func appendFrame(b []byte, k kind, stream uint32, payload []byte) []byte {
	var header [headerSize]byte
	frame{kind: k, stream: stream, length: len(payload)}.put(header[:])
	return append(append(b, header[:]...), payload...)
}

// parseFrame reads a header and checks everything that does not depend on the session.
func parseFrame(b [headerSize]byte) (frame, error) {
	first := binary.BigEndian.Uint32(b[:])
	f := frame{kind: kind(first & 0xff), length: int(first >> 8), stream: binary.BigEndian.Uint32(b[4:])}
	if f.length > maxPayload {
		return f, &protocolError{fmt.Sprintf("a frame of %d bytes, %d are allowed", f.length, maxPayload)}
	}
	if problem := f.problem(); problem != "" {
		return f, &protocolError{fmt.Sprintf("a frame of kind %d, stream %d, %d bytes: %s", f.kind, f.stream, f.length, problem)}
	}
	return f, nil
}

func (f frame) problem() string {
	switch f.kind {
	case kindOpen, kindEnd, kindReset, kindCredit, kindData:
		if f.stream == 0 {
			return "no stream has this number"
		}
	case kindPing, kindPong, kindGoAway, kindInfo:
		if f.stream != 0 {
			return "it belongs to no stream"
		}
	default:
		if f.kind < firstOptional {
			return "there is no such kind"
		}
	}
	switch f.kind {
	case kindEnd, kindReset:
		return lengthIs(f.length, 0)
	case kindCredit:
		return lengthIs(f.length, creditSize)
	case kindPing, kindPong:
		return lengthIs(f.length, pingSize)
	case kindData:
		if f.length == 0 {
			return "data without data"
		}
	}
	return ""
}

func lengthIs(got, want int) string {
	if got != want {
		return fmt.Sprintf("%d bytes were expected", want)
	}
	return ""
}
