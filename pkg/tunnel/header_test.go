// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHeader_RoundTrips(t *testing.T) {
	for name, want := range map[string]header{
		"the member's API server": {target: APIServer, limit: 10 * time.Second},
		"no limit":                {target: Agent},
		"the longest target":      {target: strings.Repeat("a", MaxTargetLength), limit: time.Millisecond},
		"a data connection":       {target: APIServer, nonce: "0123456789abcdef"},
		"one of another gateway":  {target: APIServer, member: "one", hops: 1, nonce: "0123456789abcdef"},
		"an address":              {target: "[fd00::1]:8443", limit: 49 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			encoded := want.encode()
			stream := bytes.NewReader(append(encoded, "what follows"...))
			got, err := readHeader(iotest.OneByteReader(stream))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(header{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if rest, _ := io.ReadAll(stream); string(rest) != "what follows" {
				t.Errorf("%q is left on the stream: the reader took more than the header", rest)
			}
		})
	}
}

func TestHeader_IgnoresAdditionsOfLaterVersions(t *testing.T) {
	encoded := header{target: Agent}.encode()
	encoded[1] += 3                         // the length
	encoded[3] = 0x0e                       // flags that may be ignored
	encoded = append(encoded, 1, 2, 3, 'x') // three more bytes, and the stream
	stream := bytes.NewReader(encoded)
	if h, err := readHeader(stream); err != nil || h.target != Agent {
		t.Errorf("got %+v, %v", h, err)
	}
	if stream.Len() != 1 {
		t.Errorf("%d bytes are left, want 1", stream.Len())
	}
}

func TestHeader_RefusesHostileInput(t *testing.T) {
	fixed := "\x01\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct {
		input string
		want  Code // 0: an error of the stream
	}{
		"nothing":                        {"", 0},
		"half a length":                  {"\x00", 0},
		"an end within":                  {"\x00\x10" + fixed, 0},
		"no length":                      {"\x00\x00", Malformed},
		"too long":                       {"\x04\x01" + strings.Repeat("a", 0x401), Malformed},
		"too short":                      {"\x00\x06" + fixed, Malformed},
		"no target":                      {"\x00\x07" + fixed + "\x00", Malformed},
		"a target longer than the block": {"\x00\x08" + fixed + "\x02a", Malformed},
		"a target over the limit":        {"\x01\x05" + fixed + "\xfe" + strings.Repeat("a", 254), Malformed},
		"a line break in the target":     {"\x00\x09" + fixed + "\x02a\n", Malformed},
		"a target in UTF-8":              {"\x00\x09" + fixed + "\x02\xc3\xa9", Malformed},
		"another version":                {"\x00\x08\x02\x00\x00\x00\x00\x00\x01a", Unsupported},
		"a flag that must be understood": {"\x00\x08\x01\x10\x00\x00\x00\x00\x01a", Unsupported},
		"no nonce":                       {"\x00\x08\x01\x01\x00\x00\x00\x00\x01a", Malformed},
		"a nonce that is too short":      {"\x00\x19\x01\x01\x00\x00\x00\x00\x01a\x00\x000123456789abcde", Malformed},
		"HTTP":                           {"GET / HTTP/1.1\r\n\r\n", Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readHeader(strings.NewReader(c.input))
			var refused *RefusedError
			if errors.As(err, &refused) != (c.want != 0) {
				t.Fatalf("got %v", err)
			}
			if err == nil || (c.want != 0 && refused.Code != c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestResponse_RoundTrips(t *testing.T) {
	if err := readResponse(bytes.NewReader(encodeResponse(codeOK, ""))); err != nil {
		t.Errorf("an accepted stream: %v", err)
	}
	for name, c := range map[string]struct {
		code    Code
		message string
		want    string
	}{
		"plain":              {UnknownTarget, "no target x", "no target x"},
		"a code to come":     {Code(200), "later", "later"},
		"control characters": {Unreachable, "a\r\nb\x1b[31m\u0085", "a  b [31m "},
		"not UTF-8":          {Unreachable, "a\xffb", "ab"},
		"too long":           {Busy, strings.Repeat("é", 2000), strings.Repeat("é", 512)},
	} {
		t.Run(name, func(t *testing.T) {
			stream := bytes.NewReader(append(encodeResponse(c.code, c.message), 'x'))
			err := readResponse(stream)
			var refused *RefusedError
			if !errors.As(err, &refused) || !IsRefused(err) || IsNotConnected(err) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(&RefusedError{Code: c.code, Message: c.want}, refused); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if stream.Len() != 1 {
				t.Errorf("%d bytes are left, want 1", stream.Len())
			}
		})
	}
}

func TestResponse_HostileInputIsNoRefusal(t *testing.T) {
	for name, input := range map[string]string{
		"nothing":                         "",
		"no length":                       "\x00\x00",
		"too long":                        "\xff\xff",
		"too short":                       "\x00\x02\x01\x00",
		"an end within":                   "\x00\x05\x01\x00",
		"a message longer than the block": "\x00\x03\x01\x00\x01",
		"a message over the limit":        "\x07\xd3\x01\x07\xd0" + strings.Repeat("a", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			if err := readResponse(strings.NewReader(input)); err == nil || IsRefused(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHeader_CarriesTimeLimitOfDialer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if got := headerFor(ctx, Agent).limit; got <= 59*time.Minute || got > time.Hour {
		t.Errorf("limit %v, want about an hour", got)
	}
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if got := headerFor(over, Agent).limit; got != time.Millisecond {
		t.Errorf("limit %v, want 1ms: zero would mean none", got)
	}
	if got := headerFor(t.Context(), Agent).limit; got != 0 {
		t.Errorf("limit %v, want none", got)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(header{target: APIServer, limit: time.Second}.encode())
	f.Add(header{target: APIServer, member: "one", hops: 1, nonce: "0123456789abcdef"}.encode())
	f.Add([]byte("\x00\x08\x01\xff\x00\x00\x00\x00\x01a"))
	f.Add([]byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, input []byte) {
		stream := bytes.NewReader(input)
		h, err := readHeader(stream)
		if taken := len(input) - stream.Len(); taken > 2+maxHeaderLength {
			t.Fatalf("took %d bytes", taken)
		}
		if err != nil {
			return
		}
		if err := validTarget(h.target); err != nil {
			t.Fatal(err)
		}
		again, err := readHeader(bytes.NewReader(h.encode()))
		if err != nil || again != h {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add(encodeResponse(codeOK, ""))
	f.Add(encodeResponse(Unreachable, "connection refused"))
	f.Fuzz(func(t *testing.T, input []byte) {
		err := readResponse(bytes.NewReader(input))
		var refused *RefusedError
		if !errors.As(err, &refused) {
			return
		}
		if len(refused.Message) > maxMessageLength || strings.ContainsAny(refused.Message, "\r\n\x00\x1b") {
			t.Fatalf("message %q", refused.Message)
		}
		if again := readResponse(bytes.NewReader(encodeResponse(refused.Code, refused.Message))); refused.Code != codeOK && again.Error() != err.Error() {
			t.Fatalf("%v became %v", err, again)
		}
	})
}
