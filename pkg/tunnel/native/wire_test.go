// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func frameHeader(kind byte, flags uint16, stream, length uint32) []byte {
	b := make([]byte, headerSize)
	b[1] = kind
	binary.BigEndian.PutUint16(b[2:], flags)
	binary.BigEndian.PutUint32(b[4:], stream)
	binary.BigEndian.PutUint32(b[8:], length)
	return b
}

func TestWireEndsWhenThePeerIsSilentFor25Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, remote := net.Pipe()
		defer remote.Close()
		w := newWire(local)
		defer w.Close()
		// Bytes keep it alive however slowly they come.
		go func() {
			for range 3 {
				time.Sleep(20 * time.Second)
				_, _ = remote.Write(frameHeader(frameWindowUpdate, 0, 1, 1))
			}
		}()
		began := time.Now()
		_, err := io.Copy(io.Discard, w)
		if !errors.Is(err, ErrPeerSilent) {
			t.Fatalf("read ended with %v, want ErrPeerSilent", err)
		}
		if got, want := time.Since(began), 85*time.Second; got != want {
			t.Errorf("given up after %v, want %v: 25 s after the last byte", got, want)
		}
		if !errors.Is(w.reason(), ErrPeerSilent) {
			t.Errorf("the reason is %v", w.reason())
		}
	})
}

func TestWireEndsWhenThePeerTakesNothingFor25Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, remote := net.Pipe()
		defer remote.Close()
		w := newWire(local)
		defer w.Close()
		began := time.Now()
		_, err := w.Write(frameHeader(framePing, flagSYN, 0, 1))
		if !errors.Is(err, ErrPeerStalled) {
			t.Fatalf("write ended with %v, want ErrPeerStalled", err)
		}
		if got := time.Since(began); got != 25*time.Second {
			t.Errorf("given up after %v, want 25 s", got)
		}
	})
}

// recordedConn notes each write.
type recordedConn struct {
	net.Conn
	writes [][]byte
}

func (c *recordedConn) Write(p []byte) (int, error) {
	c.writes = append(c.writes, slices.Clone(p))
	return len(p), nil
}

func (c *recordedConn) SetWriteDeadline(time.Time) error { return nil }

func TestWireSendsAFrameInOneWriteAndResetsOnlyBetweenFrames(t *testing.T) {
	conn := &recordedConn{}
	w := newWire(conn)
	header, body := frameHeader(frameData, 0, 7, 5), []byte("hello")
	mustWrite(t, w, frameHeader(frameWindowUpdate, flagSYN, 7, 0))
	mustWrite(t, w, header)
	if err := w.reset(3); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w, body)
	mustWrite(t, w, frameHeader(frameData, 4, 7, 0)) // no body follows

	want := [][]byte{
		frameHeader(frameWindowUpdate, flagSYN, 7, 0),
		frameHeader(frameWindowUpdate, flagRST, 3, 0),
		append(slices.Clone(header), body...),
		frameHeader(frameData, 4, 7, 0),
	}
	if !slices.EqualFunc(conn.writes, want, bytes.Equal) {
		t.Errorf("wrote %x, want %x", conn.writes, want)
	}
}

func mustWrite(t *testing.T, w io.Writer, p []byte) {
	t.Helper()
	if n, err := w.Write(p); n != len(p) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
	}
}

func TestFrameReaderCountsPings(t *testing.T) {
	second := time.Unix(1000, 0)
	ping, answer := frameHeader(framePing, flagSYN, 0, 1), frameHeader(framePing, 2, 0, 1)
	// A data frame whose body looks like pings.
	data := append(frameHeader(frameData, 0, 1, 100*headerSize), bytes.Repeat(ping, 100)...)
	cases := map[string]struct {
		input []byte
		clock func() time.Time
		want  error
	}{
		"as many as allowed":         {bytes.Repeat(ping, pingsPerSecond), func() time.Time { return second }, nil},
		"one too many":               {bytes.Repeat(ping, pingsPerSecond+1), func() time.Time { return second }, errPingFlood},
		"answers do not count":       {bytes.Repeat(answer, 1000), func() time.Time { return second }, nil},
		"bodies do not count":        {data, func() time.Time { return second }, nil},
		"a second later counts anew": {bytes.Repeat(ping, 1000), ticking(second), nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 5, headerSize, len(c.input)} {
				var f frameReader
				var err error
				for chunk := range slices.Chunk(c.input, piece) {
					if err = f.pass(chunk, c.clock); err != nil {
						break
					}
				}
				if !errors.Is(err, c.want) {
					t.Errorf("in pieces of %d: got %v, want %v", piece, err, c.want)
				}
			}
		})
	}
}

func ticking(t time.Time) func() time.Time {
	return func() time.Time { t = t.Add(time.Second); return t }
}

// FuzzFrameReader looks for input on which the place of the pieces' borders changes
// what is seen.
func FuzzFrameReader(f *testing.F) {
	f.Add(bytes.Repeat(frameHeader(framePing, flagSYN, 0, 1), 70), 7)
	f.Add(append(frameHeader(frameData, 0, 1, 3), "abc"...), 2)
	f.Add([]byte{0xff}, 1)
	now := func() time.Time { return time.Unix(1000, 0) }
	f.Fuzz(func(t *testing.T, input []byte, piece int) {
		if piece < 1 || len(input) == 0 {
			return
		}
		var whole, split frameReader
		want := whole.pass(input, now)
		var got error
		for chunk := range slices.Chunk(input, piece) {
			if got = split.pass(chunk, now); got != nil {
				break
			}
		}
		if !errors.Is(got, want) || (want == nil && (whole.have != split.have || whole.body != split.body)) {
			t.Errorf("whole: %v %+v, in pieces of %d: %v %+v", want, whole, piece, got, split)
		}
	})
}
