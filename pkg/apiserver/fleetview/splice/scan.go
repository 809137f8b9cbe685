// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errSyntax means that a reply is not JSON of the expected shape.
var errSyntax = errors.New("the reply is not the JSON of a list")

// ErrTooLarge is returned when one item, or the head, of a reply exceeds its limit.
var ErrTooLarge = errors.New("one object of the reply is larger than any API server stores")

// IsMalformed is true for errors about what a member sent, not about whether all of it arrived.
func IsMalformed(err error) bool { return errors.Is(err, errSyntax) || errors.Is(err, ErrTooLarge) }

// scanner follows the nesting of one JSON value, byte by byte. It only finds the end of a value;
// json.Valid checks the value.
type scanner struct {
	depth             int
	inString, escaped bool
	scalar            bool
}

// step takes the next byte of a value. It reports that the value has ended with this byte, or, for
// a number or a literal, before it.
func (s *scanner) step(c byte) (ended, before bool) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.inString && c == '\\':
		s.escaped = true
	case s.inString && c == '"':
		s.inString = false
		return s.depth == 0, false
	case s.inString:
	case s.scalar && (c == ',' || c == '}' || c == ']' || c == ':' || isSpace(c)):
		return true, true
	case s.scalar:
	case c == '"':
		s.inString = true
	case c == '{' || c == '[':
		s.depth++
	case c == '}' || c == ']':
		s.depth--
		return s.depth <= 0, false
	case s.depth == 0:
		s.scalar = true
	}
	return false, false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// source reads JSON values from a stream.
type source struct{ in *bufio.Reader }

// next is the next byte that is not white space, without consuming it.
func (s *source) next() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, truncated(err)
		}
		if !isSpace(c) {
			return c, s.in.UnreadByte()
		}
	}
}

// take reads one byte that must be c.
func (s *source) take(c byte) error {
	got, err := s.next()
	if err != nil {
		return err
	}
	if got != c {
		return fmt.Errorf("%w: %q where %q should be", errSyntax, got, c)
	}
	_, err = s.in.Discard(1)
	return err
}

// value appends the next value to into, which must not become longer than limit.
func (s *source) value(into []byte, limit int) ([]byte, error) {
	if _, err := s.next(); err != nil {
		return nil, err
	}
	begin := len(into)
	var at scanner
	for {
		if _, err := s.in.Peek(1); err != nil {
			if at.scalar && errors.Is(err, io.EOF) {
				break
			}
			return nil, truncated(err)
		}
		chunk, err := s.in.Peek(s.in.Buffered())
		if err != nil {
			return nil, truncated(err)
		}
		used, ended := at.through(chunk)
		if len(into)-begin+used > limit {
			return nil, ErrTooLarge
		}
		into = append(into, chunk[:used]...)
		if _, err := s.in.Discard(used); err != nil {
			return nil, err
		}
		if ended {
			break
		}
	}
	if !json.Valid(into[begin:]) {
		return nil, errSyntax
	}
	return into, nil
}

// through takes bytes until the value ends, and returns how many belong to it.
func (s *scanner) through(chunk []byte) (used int, ended bool) {
	quote := -1 // The first quote at or after i, once it is known.
	for i := 0; i < len(chunk); i++ {
		if s.inString && !s.escaped {
			// Most bytes of a list are inside strings. The quote is searched once for all escapes
			// before it: a member decides how many there are.
			if quote < i {
				quote = indexFrom(chunk, i, '"')
			}
			if i = indexFrom(chunk[:quote], i, '\\'); i == len(chunk) {
				break
			}
		}
		ended, before := s.step(chunk[i])
		switch {
		case ended && before:
			return i, true
		case ended:
			return i + 1, true
		}
	}
	return len(chunk), false
}

// indexFrom is the index of the first c at or after from, or the length of the text.
func indexFrom(text []byte, from int, c byte) int {
	if at := bytes.IndexByte(text[from:], c); at >= 0 {
		return from + at
	}
	return len(text)
}

// truncated translates the end of a stream in the middle of a list: the reply broke off.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// maxElements limits the fields of an object, and the cells of a row, that are taken apart. Five bytes
// of an object take fifty in memory. No object that an API server stores has so many labels.
const maxElements = 100_000

// field is one key of an object with its value, as positions in the object's bytes.
type field struct {
	key string
	// from and to delimit the value; begin is where the key starts.
	begin, from, to int
}

// fields returns the keys of an object that is known to be valid JSON. Keys are unescaped, as every
// reader of the object unescapes them.
func fields(object []byte) ([]field, error) {
	var all []field
	err := elements(object, '{', func(begin, end int) error {
		var at scanner
		used, _ := at.through(object[begin:end])
		var key string
		if err := json.Unmarshal(object[begin:begin+used], &key); err != nil {
			return fmt.Errorf("%w: %w", errSyntax, err)
		}
		from := skipSpace(object, begin+used)
		from = skipSpace(object, from+1) // The colon.
		all = append(all, field{key: key, begin: begin, from: from, to: end})
		return nil
	})
	return all, err
}

// elements calls each with the position of every element of an array, or of every key and value of
// an object; text is valid JSON.
func elements(text []byte, opens byte, each func(begin, end int) error) error {
	i := skipSpace(text, 0)
	if i >= len(text) || text[i] != opens {
		return fmt.Errorf("%w: no %q", errSyntax, opens)
	}
	i = skipSpace(text, i+1)
	for count := 0; i < len(text) && text[i] != '}' && text[i] != ']'; count++ {
		if count == maxElements {
			return fmt.Errorf("%w: it has more than %d fields", errSyntax, maxElements)
		}
		begin, end := i, i
		for end < len(text) && text[end] != ',' && text[end] != '}' && text[end] != ']' {
			used := 1
			if text[end] != ':' {
				var at scanner
				used, _ = at.through(text[end:])
			}
			end = skipSpace(text, end+max(used, 1))
		}
		if err := each(begin, trimSpace(text, end)); err != nil {
			return err
		}
		if end < len(text) && text[end] == ',' {
			end++
		}
		i = skipSpace(text, end)
	}
	return nil
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func trimSpace(text []byte, end int) int {
	for end > 0 && isSpace(text[end-1]) {
		end--
	}
	return end
}

// only returns the field of a key, or nil; a duplicate key is an error.
func only(all []field, key string) (*field, error) {
	var found *field
	for i := range all {
		if all[i].key != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: %q is there twice", errSyntax, key)
		}
		found = &all[i]
	}
	return found, nil
}
