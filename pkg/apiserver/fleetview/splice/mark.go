// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"encoding/json"
	"fmt"
)

// Marker marks items as one member's.
type Marker struct {
	// Member is the member of the items, Label the key of the label that names it.
	Member, Label string
	// Qualified prefixes names: <member>.<name>.
	Qualified bool
	// version replaces the resourceVersion of objects, if it is not empty.
	version string
	// cells maps each column of the response after the member's to a cell of a row; nil means all
	// in their order. name is the cell with the name, or -1.
	cells []int
	name  int
	// rows is true if the items are rows of a table.
	rows bool

	parser parser
}

// Mark appends an item of a list, as a member wrote it, with the mark.
func (m *Marker) Mark(into, item []byte) ([]byte, error) {
	if m.rows {
		return m.Row(into, item)
	}
	return m.Object(into, item)
}

// Object appends an object, as a member wrote it, with the mark.
func (m *Marker) Object(into, object []byte) ([]byte, error) {
	all, err := m.parser.fields(object)
	if err != nil {
		return nil, err
	}
	metadata, err := only(all, "metadata")
	if err != nil {
		return nil, err
	}
	if metadata == nil {
		into = append(into, `{"metadata":{"labels":`...)
		into = append(m.appendVersion(m.appendLabels(into, nil, nil)), '}')
		return appendFields(into, object, all), nil
	}
	into = append(into, object[:metadata.from]...)
	if into, err = m.metadata(into, object[metadata.from:metadata.to]); err != nil {
		return nil, err
	}
	return append(into, object[metadata.to:]...), nil
}

// One returns a whole reply that is one object with the mark.
func (m *Marker) One(reply []byte) ([]byte, error) {
	if !json.Valid(reply) {
		return nil, errSyntax
	}
	return m.Object(nil, reply)
}

// appendFields ends an object that was begun with at least one field.
func appendFields(into, object []byte, all []field) []byte {
	for _, f := range all {
		into = append(into, ',')
		into = append(into, object[f.begin:f.to]...)
	}
	return append(into, '}')
}

func (m *Marker) metadata(into, metadata []byte) ([]byte, error) {
	all, err := m.parser.fields(metadata)
	if err != nil {
		return nil, err
	}
	labels, err := only(all, "labels")
	if err != nil {
		return nil, err
	}
	name, err := only(all, "name")
	if err != nil {
		return nil, err
	}
	version, err := only(all, "resourceVersion")
	if err != nil {
		return nil, err
	}
	into = append(into, `{"labels":`...)
	if into, err = m.labels(into, metadata, labels); err != nil {
		return nil, err
	}
	into = m.appendVersion(into)
	for i := range all {
		f := &all[i]
		switch {
		case f == labels, f == version && m.version != "":
		case f == name && m.Qualified:
			into = append(into, `,"name":`...)
			if into, err = m.qualify(into, metadata[f.from:f.to]); err != nil {
				return nil, err
			}
		default:
			into = append(into, ',')
			into = append(into, metadata[f.begin:f.to]...)
		}
	}
	return append(into, '}'), nil
}

func (m *Marker) appendVersion(into []byte) []byte {
	if m.version == "" {
		return into
	}
	return appendText(append(into, `,"resourceVersion":`...), m.version)
}

// labels appends the labels with the member's label, which replaces an existing one.
func (m *Marker) labels(into, metadata []byte, labels *field) ([]byte, error) {
	if labels == nil || string(metadata[labels.from:labels.to]) == "null" {
		return m.appendLabels(into, nil, nil), nil
	}
	text := metadata[labels.from:labels.to]
	all, err := m.parser.fields(text)
	if err != nil {
		return nil, err
	}
	return m.appendLabels(into, text, all), nil
}

func (m *Marker) appendLabels(into, text []byte, all []field) []byte {
	into = append(into, '{')
	for _, f := range all {
		if string(f.key) != m.Label {
			into = append(into, text[f.begin:f.to]...)
			into = append(into, ',')
		}
	}
	into = appendText(into, m.Label)
	into = append(into, ':')
	return append(appendText(into, m.Member), '}')
}

// qualify appends a JSON name with the member as its prefix.
func (m *Marker) qualify(into, name []byte) ([]byte, error) {
	var plain string
	if err := json.Unmarshal(name, &plain); err != nil {
		return nil, fmt.Errorf("%w: %w", errSyntax, err)
	}
	return appendText(into, m.Member+"."+plain), nil
}

func appendText(into []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // Encoding a string cannot fail.
	return append(into, quoted...)
}

// Row appends a row of a table with the member in its first cell.
func (m *Marker) Row(into, row []byte) ([]byte, error) {
	all, err := m.parser.fields(row)
	if err != nil {
		return nil, err
	}
	cells, err := only(all, "cells")
	if err != nil {
		return nil, err
	}
	object, err := only(all, "object")
	if err != nil {
		return nil, err
	}
	into = append(into, `{"cells":`...)
	if into, err = m.row(into, row, cells); err != nil {
		return nil, err
	}
	for i := range all {
		f := &all[i]
		switch {
		case f == cells:
		case f == object && string(row[f.from:f.to]) != "null":
			into = append(into, `,"object":`...)
			if into, err = m.Object(into, row[f.from:f.to]); err != nil {
				return nil, err
			}
		default:
			into = append(into, ',')
			into = append(into, row[f.begin:f.to]...)
		}
	}
	return append(into, '}'), nil
}

func (m *Marker) row(into, row []byte, cells *field) ([]byte, error) {
	var values [][]byte
	if cells != nil {
		var err error
		if values, err = m.parser.elements(row[cells.from:cells.to]); err != nil {
			return nil, err
		}
	}
	into = appendText(append(into, '['), m.Member)
	for i := range m.width(len(values)) {
		into = append(into, ',')
		at := i
		if m.cells != nil {
			at = m.cells[i]
		}
		switch {
		case at < 0 || at >= len(values):
			into = append(into, "null"...)
		case m.Qualified && i == m.name:
			var err error
			if into, err = m.qualify(into, values[at]); err != nil {
				return nil, err
			}
		default:
			into = append(into, values[at]...)
		}
	}
	return append(into, ']'), nil
}

func (m *Marker) width(cells int) int {
	if m.cells != nil {
		return len(m.cells)
	}
	return cells
}
