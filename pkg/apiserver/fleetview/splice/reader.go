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

const (
	// MaxItem limits the bytes of one item: an API server stores 1.5 MiB, JSON may take more than
	// that.
	MaxItem = 8 << 20
	// maxHead limits the bytes of each other field of a list.
	maxHead = 1 << 20
	// tableKind is the kind of a list that is a table.
	tableKind = "Table"
	// window is the size of one read.
	window = 16 << 10
)

// Metadata is the metadata of a list.
type Metadata struct {
	ResourceVersion    string `json:"resourceVersion,omitempty"`
	Continue           string `json:"continue,omitempty"`
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty"`
	// Warnings replaces headers in a fleet's list whose headers have been sent. Members' lists have
	// none.
	Warnings []string `json:"warnings,omitempty"`
}

// Reader cuts one reply into its items. Call Open first, then Next until io.EOF; then Metadata is
// complete.
type Reader struct {
	// Kind and APIVersion are those of the list. Table is true for a table, whose items are rows.
	// For custom resources the kind is known only after the last item: API servers write their
	// fields sorted by name, "items" before "kind".
	Kind, APIVersion string
	Table            bool
	// Columns are the columnDefinitions of a table.
	Columns []byte
	// Metadata is the list's own.
	Metadata Metadata

	source *source
	// inside is true between the first and the last item; read once the first was reached.
	inside, read bool
}

// NewReader returns a Reader of one reply.
func NewReader(in io.Reader) *Reader {
	return &Reader{source: newSource(bufio.NewReaderSize(in, window))}
}

// Open reads up to the first item. It fails if the reply is not a list.
func (r *Reader) Open() error {
	err := r.source.token('{')
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err == nil {
		err = r.toItems()
	}
	if err == nil && !r.read {
		return fmt.Errorf("%w: it has no items", errSyntax)
	}
	return err
}

// Next returns the bytes of the next item; they are valid until the next call. After the last item
// it returns io.EOF. Any other error means that the reply broke off or is not a list.
func (r *Reader) Next() ([]byte, error) {
	if !r.inside {
		return nil, io.EOF
	}
	if r.source.next() != ']' {
		return r.source.value(MaxItem)
	}
	if err := r.source.token(']'); err != nil {
		return nil, err
	}
	r.inside = false
	if err := r.toItems(); err != nil {
		return nil, err
	}
	return nil, io.EOF
}

// toItems reads fields up to the array of items, or the end of the list.
func (r *Reader) toItems() error {
	for r.source.next() != '}' {
		name, err := r.source.value(maxHead)
		if err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(name, &key); err != nil {
			return fmt.Errorf("%w: %w", errSyntax, err)
		}
		if key == "items" || key == "rows" {
			if begun, err := r.begin(key); begun || err != nil {
				return err
			}
			continue
		}
		value, err := r.source.value(maxHead)
		if err != nil {
			return err
		}
		if err := r.set(key, value); err != nil {
			return err
		}
	}
	return r.end()
}

// begin enters the array of items. A list without items may say null.
func (r *Reader) begin(key string) (begun bool, err error) {
	if r.read || key == "rows" != r.Table {
		return false, fmt.Errorf("%w: unexpected %q", errSyntax, key)
	}
	r.read = true
	if r.source.next() == 'n' {
		return false, r.source.token('n')
	}
	if err := r.source.token('['); err != nil {
		return false, err
	}
	r.inside = true
	return true, nil
}

// set keeps a field of the list. That it is a table, and its columns, must be known before the
// rows.
func (r *Reader) set(key string, value []byte) error {
	var into any
	switch key {
	case "kind":
		if r.Kind != "" {
			return fmt.Errorf("%w: its kind comes twice", errSyntax)
		}
		into = &r.Kind
	case "apiVersion":
		into = &r.APIVersion
	case "metadata":
		into = &r.Metadata
	case "columnDefinitions":
		if r.read || r.Columns != nil {
			return fmt.Errorf("%w: its columns come late or twice", errSyntax)
		}
		r.Columns = bytes.Clone(value)
		return nil
	default:
		return nil
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("%w: %w", errSyntax, err)
	}
	if key == "kind" && r.read && r.Kind == tableKind {
		return fmt.Errorf("%w: the kind Table follows its rows", errSyntax)
	}
	r.Table = r.Kind == tableKind
	return nil
}

// end reads the brace that ends the list. Nothing may follow it.
func (r *Reader) end() error {
	if err := r.source.token('}'); err != nil {
		return err
	}
	if r.Kind == "" {
		return fmt.Errorf("%w: it has no kind", errSyntax)
	}
	return r.source.end()
}
