// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// errSyntax means that a reply is not JSON of the expected shape.
var errSyntax = errors.New("the reply is not the JSON of a list")

// ErrTooLarge is returned when one item, or the head, of a reply exceeds its limit.
var ErrTooLarge = errors.New("one object of the reply is larger than any API server stores")

// IsMalformed is true for errors about what a member sent, not about whether all of it arrived.
func IsMalformed(err error) bool { return errors.Is(err, errSyntax) || errors.Is(err, ErrTooLarge) }

// lenient are the options with which encoding/json reads too: what one member's clients accept is not
// refused here. Keys that matter are looked up with only, which refuses duplicates.
func lenient() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// source reads JSON values from a stream.
type source struct {
	in      limitedReader
	decoder jsontext.Decoder
}

func newSource(in io.Reader) *source {
	s := &source{in: limitedReader{in: in}}
	s.decoder.Reset(&s.in, lenient()...)
	return s
}

// next is the kind of the next token, without consuming it. It is not valid if there is none; the
// method that reads it returns the reason.
func (s *source) next() jsontext.Kind {
	s.allow(maxHead)
	return s.decoder.PeekKind()
}

// token reads one token that must be of this kind.
func (s *source) token(kind jsontext.Kind) error {
	s.allow(maxHead)
	got, err := s.decoder.ReadToken()
	if err != nil {
		return s.reason(err)
	}
	if got.Kind() != kind {
		return fmt.Errorf("%w: %v where %v should be", errSyntax, got.Kind(), kind)
	}
	return nil
}

// end returns nil at the end of the stream.
func (s *source) end() error {
	s.allow(maxHead)
	switch _, err := s.decoder.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return s.reason(err)
	}
	return fmt.Errorf("%w: there is something behind it", errSyntax)
}

// value reads the next value, which must not be longer than limit. It is valid until the next read. The
// error is io.EOF if the stream ends before it, and is not in the middle of another value.
func (s *source) value(limit int) ([]byte, error) {
	s.allow(limit)
	value, err := s.decoder.ReadValue()
	if err != nil {
		return nil, s.reason(err)
	}
	if len(value) > limit {
		return nil, ErrTooLarge
	}
	return value, nil
}

// allow limits what is read from now on, because the decoder buffers a value whatever its length. There
// may be white space around it.
func (s *source) allow(limit int) { s.in.left = limit + window - len(s.decoder.UnreadBuffer()) }

// reason translates an error of the decoder, whose text may have keys of the member.
func (s *source) reason(err error) error {
	switch {
	case s.in.err != nil:
		return s.in.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return errSyntax
}

// limitedReader fails when more is read than is left.
type limitedReader struct {
	in   io.Reader
	left int
	// err is why it failed.
	err error
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		l.err = ErrTooLarge
		return 0, l.err
	}
	n, err := l.in.Read(p[:min(len(p), l.left)])
	l.left -= n
	if n == 0 && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

// maxElements limits the fields of an object, and the cells of a row, that are taken apart. Five bytes
// of an object take fifty in memory. No object that an API server stores has so many labels.
const maxElements = 100_000

// field is one key of an object with its value, as positions in the object's bytes.
type field struct {
	key []byte
	// from and to delimit the value; begin is where the key starts.
	begin, from, to int
}

// parser takes valid JSON apart. The zero value is ready for use.
type parser struct {
	text    bytes.Buffer
	decoder jsontext.Decoder
}

// open begins with a text, which has to be of this kind.
func (p *parser) open(text []byte, kind jsontext.Kind) error {
	p.text = *bytes.NewBuffer(text)
	p.decoder.Reset(&p.text, lenient()...)
	if got, err := p.decoder.ReadToken(); err != nil || got.Kind() != kind {
		return fmt.Errorf("%w: no %v", errSyntax, kind)
	}
	return nil
}

// value returns the next value and where it begins, or nil at the end.
func (p *parser) value() (value []byte, begin int, err error) {
	if kind := p.decoder.PeekKind(); kind == '}' || kind == ']' {
		return nil, 0, nil
	}
	if value, err = p.decoder.ReadValue(); err != nil {
		return nil, 0, errSyntax
	}
	return value, int(p.decoder.InputOffset()) - len(value), nil
}

// fields returns the keys of an object. They are unescaped, as every reader of the object unescapes them.
func (p *parser) fields(object []byte) ([]field, error) {
	if err := p.open(object, '{'); err != nil {
		return nil, err
	}
	all := make([]field, 0, 8)
	for {
		name, begin, err := p.value()
		if name == nil || err != nil {
			return all, err
		}
		if len(all) == maxElements {
			return nil, fmt.Errorf("%w: it has more than %d fields", errSyntax, maxElements)
		}
		key := name[1 : len(name)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			if key, err = jsontext.AppendUnquote(nil, name); err != nil {
				return nil, errSyntax
			}
		}
		value, from, err := p.value()
		if err != nil {
			return nil, err
		}
		all = append(all, field{key: key, begin: begin, from: from, to: from + len(value)})
	}
}

// elements returns the elements of an array.
func (p *parser) elements(array []byte) ([][]byte, error) {
	if err := p.open(array, '['); err != nil {
		return nil, err
	}
	var all [][]byte
	for {
		element, _, err := p.value()
		if element == nil || err != nil {
			return all, err
		}
		if len(all) == maxElements {
			return nil, fmt.Errorf("%w: it has more than %d elements", errSyntax, maxElements)
		}
		all = append(all, element)
	}
}

// only returns the field of a key, or nil; a duplicate key is an error.
func only(all []field, key string) (*field, error) {
	var found *field
	for i := range all {
		if string(all[i].key) != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: %q is there twice", errSyntax, key)
		}
		found = &all[i]
	}
	return found, nil
}
