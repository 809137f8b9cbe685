// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"errors"
	"io"
)

// ErrOtherShape is returned for a reply whose items cannot stand beside the others': a
// table among lists, or a list of another kind.
var ErrOtherShape = errors.New("the reply has another shape than those of other members")

// Writer writes one list of the items of several replies. Its metadata come last, when
// they are known.
type Writer struct {
	out              io.Writer
	label            string
	qualified        bool
	kind, apiVersion string
	table            bool
	columns          *Columns
	begun            bool
	buffer           []byte
	// Items is how many were written.
	Items int
}

// NewWriter writes to out; label is the key of the label that says whose an item is.
func NewWriter(out io.Writer, label string, qualified bool) *Writer {
	return &Writer{out: out, label: label, qualified: qualified}
}

// Shape is what the pages of one list have in common. It is small: a token carries it.
type Shape struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Columns    json.RawMessage `json:"columns,omitempty"`
}

// Shape is that of the answer; its Kind is empty as long as there was no reply.
func (w *Writer) Shape() (Shape, error) {
	shape := Shape{Kind: w.kind, APIVersion: w.apiVersion}
	if !w.table {
		return shape, nil
	}
	var err error
	shape.Columns, err = json.Marshal(w.columns.columns)
	return shape, err
}

// Continue has the answer have the shape of a page before it.
func (w *Writer) Continue(of Shape) error {
	w.kind, w.apiVersion, w.table = of.Kind, of.APIVersion, of.Kind == "Table"
	var err error
	if w.table {
		w.columns, err = NewColumns(of.Columns)
	}
	return err
}

// Marker returns what marks the items of a reply that is open. The first reply says of
// which kind the answer is.
func (w *Writer) Marker(member string, of *Reader) (*Marker, error) {
	m := &Marker{Member: member, Label: w.label, Qualified: w.qualified, name: -1, rows: of.Table}
	if w.kind == "" {
		w.kind, w.apiVersion, w.table = of.Kind, of.APIVersion, of.Table
		if of.Table {
			columns, err := NewColumns(of.Columns)
			if err != nil {
				return nil, err
			}
			w.columns = columns
		}
	}
	if of.Kind != w.kind || of.APIVersion != w.apiVersion {
		return nil, ErrOtherShape
	}
	if of.Table {
		return m, w.columns.Fit(m, of.Columns)
	}
	return m, nil
}

// Item writes one item.
func (w *Writer) Item(m *Marker, item []byte) error {
	var err error
	if w.buffer, err = m.Mark(w.buffer[:0], item); err != nil {
		return err
	}
	return w.Marked(w.buffer)
}

// Marked writes one item that bears its mark.
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
	head := append([]byte(`{"kind":`), appendText(nil, w.kind)...)
	head = append(head, `,"apiVersion":`...)
	head = appendText(head, w.apiVersion)
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
	_, err = w.out.Write(append(append([]byte(`],"metadata":`), text...), '}', '\n'))
	return err
}
