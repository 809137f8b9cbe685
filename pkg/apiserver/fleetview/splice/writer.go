// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"errors"
	"io"
)

// ErrOtherShape is returned for a reply whose items do not fit those of the others: a table among
// lists, or a list of another kind.
var ErrOtherShape = errors.New("the reply has another shape than those of other members")

// Writer merges the items of several replies into one list. Its metadata comes last, when it is
// known. So does its kind, if no reply had it before its items.
type Writer struct {
	out              io.Writer
	label            string
	qualified        bool
	kind, apiVersion string
	table            bool
	columns          *Columns
	begun            bool
	// kindLast is true if the list was begun without its kind.
	kindLast bool
	buffer   []byte
	// Items is the number of items written.
	Items int
}

// NewWriter writes to out; label is the key of the label that names an item's member.
func NewWriter(out io.Writer, label string, qualified bool) *Writer {
	return &Writer{out: out, label: label, qualified: qualified}
}

// Shape is what the pages of one list have in common. It is small, because a token carries it.
type Shape struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Columns    json.RawMessage `json:"columns,omitempty"`
}

// Shape is the shape of the response; its Kind is empty while no reply was read to its end.
func (w *Writer) Shape() (Shape, error) {
	shape := Shape{Kind: w.kind, APIVersion: w.apiVersion}
	if !w.table {
		return shape, nil
	}
	var err error
	shape.Columns, err = json.Marshal(w.columns.columns)
	return shape, err
}

// Continue gives the response the shape of a previous page.
func (w *Writer) Continue(of Shape) error {
	w.kind, w.apiVersion, w.table = of.Kind, of.APIVersion, of.Kind == "Table"
	var err error
	if w.table {
		w.columns, err = NewColumns(of.Columns)
	}
	return err
}

// Marker returns the marker for the items of an open reply. The first reply decides the kind of the
// response. After the items have been read, call End with the reply.
func (w *Writer) Marker(member string, of *Reader) (*Marker, error) {
	m := &Marker{Member: member, Label: w.label, Qualified: w.qualified, name: -1, rows: of.Table}
	if w.apiVersion == "" {
		w.apiVersion, w.table = of.APIVersion, of.Table
		if of.Table {
			columns, err := NewColumns(of.Columns)
			if err != nil {
				return nil, err
			}
			w.columns = columns
		}
	}
	if of.Table != w.table || of.APIVersion != w.apiVersion {
		return nil, ErrOtherShape
	}
	if err := w.End(of); err != nil {
		return nil, err
	}
	if of.Table {
		return m, w.columns.Fit(m, of.Columns)
	}
	return m, nil
}

// End compares the kind of a reply, as far as it is known by now, with that of the response.
func (w *Writer) End(of *Reader) error {
	if w.kind == "" {
		w.kind = of.Kind
	}
	if of.Kind != "" && of.Kind != w.kind {
		return ErrOtherShape
	}
	return nil
}

// Save returns a function that makes the Writer forget what was written since, for a caller that
// takes it back from the output.
func (w *Writer) Save() (restore func()) {
	saved := *w
	return func() { *w = saved }
}

// Item writes one item.
func (w *Writer) Item(m *Marker, item []byte) error {
	var err error
	if w.buffer, err = m.Mark(w.buffer[:0], item); err != nil {
		return err
	}
	return w.Marked(w.buffer)
}

// Marked writes one item that already has its mark.
func (w *Writer) Marked(item []byte) error {
	if err := w.begin(); err != nil {
		return err
	}
	if w.Items > 0 {
		if _, err := w.out.Write([]byte{','}); err != nil {
			return err
		}
	}
	w.Items++
	_, err := w.out.Write(item)
	return err
}

func (w *Writer) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	head := []byte{'{'}
	if w.kindLast = w.kind == ""; !w.kindLast {
		head = append(appendText(append(head, `"kind":`...), w.kind), ',')
	}
	head = appendText(append(head, `"apiVersion":`...), w.apiVersion)
	if w.table {
		head = append(head, `,"columnDefinitions":`...)
		definitions, err := w.columns.Definitions()
		if err != nil {
			return err
		}
		head = append(head, definitions...)
		head = append(head, `,"rows":[`...)
	} else {
		head = append(head, `,"items":[`...)
	}
	_, err := w.out.Write(head)
	return err
}

// Close ends the list with its metadata.
func (w *Writer) Close(metadata Metadata) error {
	if err := w.begin(); err != nil {
		return err
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	tail := []byte{']', ','}
	if w.kindLast {
		tail = append(appendText(append(tail, `"kind":`...), w.kind), ',')
	}
	tail = append(append(tail, `"metadata":`...), text...)
	_, err = w.out.Write(append(tail, '}', '\n'))
	return err
}
