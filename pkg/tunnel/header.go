// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// The sizes of SPEC.md, "The header" and "The response".
const (
	headerVersion = 1
	// headerFixed is version, flags, time limit and the target's length.
	headerFixed = 7
	// relayFixed is hops and the member's length, after the target.
	relayFixed      = 2
	maxHeaderLength = 1024
	// responseFixed is the code and the message's length.
	responseFixed     = 3
	maxResponseLength = 2048
	maxMessageLength  = 1024
	// mustUnderstand are the flags that an agent refuses if it does not know them.
	mustUnderstand = 0xf0
	// flagData asks for a data connection; the nonce is the last field.
	flagData  = 0x01
	nonceSize = 16
)

// header is what the gateway writes first on a stream.
type header struct {
	target string
	// limit is how long the gateway waits for the response; 0 leaves it to the agent.
	limit time.Duration
	// member and hops are set only between gateways: the member of the target, and how many
	// gateways have forwarded the stream. Agents ignore them.
	member string
	hops   uint8
	// nonce is what the agent presents to open a data connection; empty if the gateway wants none.
	nonce string
}

func (h header) encode() []byte {
	length, flags := headerFixed+len(h.target), byte(0)
	if h.member != "" || h.nonce != "" {
		length += relayFixed + len(h.member)
	}
	if h.nonce != "" {
		length, flags = length+nonceSize, flagData
	}
	b := make([]byte, 2, 2+length)
	binary.BigEndian.PutUint16(b, uint16(length))
	b = append(b, headerVersion, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(min(h.limit.Milliseconds(), math.MaxUint32)))
	b = append(b, byte(len(h.target)))
	b = append(b, h.target...)
	if h.member != "" || h.nonce != "" {
		b = append(b, h.hops, byte(len(h.member)))
		b = append(b, h.member...)
	}
	return append(b, h.nonce...)
}

// readHeader reads one header and not a byte more. A *RefusedError is the response for the gateway;
// other errors are the stream's.
func readHeader(r io.Reader) (header, error) {
	b, err := readBlock(r, maxHeaderLength)
	if errors.Is(err, errBlockLength) {
		return header{}, &RefusedError{Code: Malformed, Message: err.Error()}
	}
	if err != nil {
		return header{}, fmt.Errorf("reading a stream's header: %w", err)
	}
	return parseHeader(b)
}

func parseHeader(b []byte) (header, error) {
	if len(b) > 0 && b[0] != headerVersion {
		return header{}, &RefusedError{Code: Unsupported, Message: fmt.Sprintf("header version %d, this agent knows version %d", b[0], headerVersion)}
	}
	if len(b) < headerFixed || len(b) < headerFixed+int(b[6]) {
		return header{}, &RefusedError{Code: Malformed, Message: fmt.Sprintf("a header of %d bytes is incomplete", len(b))}
	}
	if flags := b[1] & mustUnderstand; flags != 0 {
		return header{}, &RefusedError{Code: Unsupported, Message: fmt.Sprintf("header flags %#02x", flags)}
	}
	h := header{
		limit:  time.Duration(binary.BigEndian.Uint32(b[2:])) * time.Millisecond,
		target: string(b[headerFixed : headerFixed+int(b[6])]),
	}
	if err := validTarget(h.target); err != nil {
		return header{}, &RefusedError{Code: Malformed, Message: err.Error()}
	}
	rest := b[headerFixed+len(h.target):]
	h.hops, h.member = parseRelay(rest)
	if b[1]&flagData == 0 {
		return h, nil
	}
	if len(rest) < relayFixed || len(rest) < relayFixed+int(rest[1])+nonceSize {
		return header{}, &RefusedError{Code: Malformed, Message: "a header without the nonce that its flags announce"}
	}
	h.nonce = string(rest[relayFixed+int(rest[1]):][:nonceSize])
	return h, nil
}

// parseRelay reads what gateways add. Data of another form, or without a member, is of a later
// version.
func parseRelay(b []byte) (hops uint8, member string) {
	if len(b) < relayFixed || b[1] == 0 || len(b) < relayFixed+int(b[1]) {
		return 0, ""
	}
	return b[0], string(b[relayFixed : relayFixed+int(b[1])])
}

// encodeResponse encodes the agent's response: codeOK, codeOnData, or the reason of a refusal.
func encodeResponse(code Code, message string) []byte {
	message = Printable(message, maxMessageLength)
	b := make([]byte, 2, 2+responseFixed+len(message))
	binary.BigEndian.PutUint16(b, uint16(responseFixed+len(message)))
	b = append(b, byte(code))
	b = binary.BigEndian.AppendUint16(b, uint16(len(message)))
	return append(b, message...)
}

// readResponse reads one response and not a byte more. It returns nil if the stream is accepted, a
// *RefusedError if not, and other errors if there was no response.
func readResponse(r io.Reader) error {
	b, err := readBlock(r, maxResponseLength)
	if err != nil {
		return fmt.Errorf("reading the agent's response: %w", err)
	}
	if len(b) < responseFixed {
		return fmt.Errorf("reading the agent's response: %d bytes are incomplete", len(b))
	}
	length := int(binary.BigEndian.Uint16(b[1:]))
	if length > maxMessageLength || len(b) < responseFixed+length {
		return fmt.Errorf("reading the agent's response: a message of %d bytes does not fit", length)
	}
	if Code(b[0]) == codeOK {
		return nil
	}
	return &RefusedError{Code: Code(b[0]), Message: Printable(string(b[responseFixed:responseFixed+length]), maxMessageLength)}
}

var errBlockLength = errors.New("length out of bounds")

// readBlock reads a length of two bytes and that many bytes, 1 to limit.
func readBlock(r io.Reader, limit int) ([]byte, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint16(size[:]))
	if length == 0 || length > limit {
		return nil, fmt.Errorf("%w: %d bytes, 1 to %d are allowed", errBlockLength, length, limit)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, unexpectedEnd(err)
	}
	return b, nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Printable makes foreign text safe for a log line, a condition or an HTTP response: at most limit
// bytes of valid UTF-8 without control characters.
func Printable(text string, limit int) string {
	text = strings.ToValidUTF8(text[:min(len(text), limit)], "")
	return strings.Map(func(r rune) rune {
		if r < ' ' || (r >= 0x7f && r < 0xa0) {
			return ' '
		}
		return r
	}, text)
}
