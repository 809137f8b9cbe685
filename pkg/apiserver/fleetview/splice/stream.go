// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Event is one event of a member's watch.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string
	// Object is the object of the event, or a table with one row; it is valid until the next event
	// is read.
	Object []byte
	// Kind and APIVersion are the object's; ResourceVersion is the member's version after this
	// event.
	Kind, APIVersion, ResourceVersion string
	// Code is that of the Status in an ERROR.
	Code int
	// Identity is that of the event's object.
	Identity
}

// Identity identifies an object.
type Identity struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Stream reads the events of one member's watch.
type Stream struct{ source *source }

// NewStream returns a Stream of one watch.
func NewStream(in io.Reader) *Stream {
	return &Stream{source: newSource(in)}
}

// described is the part of an object that says where a watch is.
type described struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Code       int    `json:"code"`
	named
	Rows onlyRow `json:"rows"`
}

// onlyRow is the row of an event. An API server sends a table with each event's object. A table
// that claims a million rows is not decoded.
type onlyRow struct {
	Object named `json:"object"`
	there  bool
}

// UnmarshalJSON returns an error for more rows than one.
func (r *onlyRow) UnmarshalJSON(rows []byte) error {
	if string(rows) == "null" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(rows))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return errors.New("its rows are no list")
	}
	for decoder.More() {
		if r.there {
			return errors.New("it has several rows")
		}
		var row struct {
			Object named `json:"object"`
		}
		if err := decoder.Decode(&row); err != nil {
			return err
		}
		r.Object, r.there = row.Object, true
	}
	return nil
}

// named is the part of an object's metadata that a watch needs.
type named struct {
	Metadata struct {
		Metadata
		Identity
	} `json:"metadata"`
}

// Next returns the next event, or io.EOF if the watch ended between two events.
func (s *Stream) Next() (Event, error) {
	text, err := s.source.value(MaxItem)
	if err != nil {
		return Event{}, err
	}
	var frame struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errSyntax, err)
	}
	var of described
	if err := json.Unmarshal(frame.Object, &of); err != nil {
		return Event{}, fmt.Errorf("%w: %w", errSyntax, err)
	}
	event := Event{
		Type: frame.Type, Object: frame.Object, Kind: of.Kind, APIVersion: of.APIVersion, Code: of.Code,
		ResourceVersion: of.Metadata.ResourceVersion, Identity: of.Metadata.Identity,
	}
	if of.Rows.there {
		row := of.Rows.Object.Metadata
		event.Identity = row.Identity
		if event.ResourceVersion == "" {
			event.ResourceVersion = row.ResourceVersion
		}
	}
	return event, nil
}

// Events encodes the events of many members as one watch: as tables, if the members send tables,
// with the columns in the first only.
type Events struct {
	label     string
	qualified bool
	columns   *Columns
	sent      bool
}

// NewEvents returns an encoder; label is the key of the label that names the member.
func NewEvents(label string, qualified bool) *Events {
	return &Events{label: label, qualified: qualified}
}

// Member encodes the events of one member. Only the first table of a member has columns.
type Member struct {
	events *Events
	marker Marker
}

// Member returns the encoder for the events of a member.
func (e *Events) Member(name string) *Member {
	return &Member{events: e, marker: Marker{Member: name, Label: e.label, Qualified: e.qualified, name: -1}}
}

// Event encodes an event with its version in the merged watch. Only one goroutine may call it for
// all members.
func (m *Member) Event(of Event, version string) ([]byte, error) {
	m.marker.version = version
	out := append([]byte(`{"type":`), appendText(nil, of.Type)...)
	out = append(out, `,"object":`...)
	var err error
	if of.Kind == "Table" {
		out, err = m.table(out, of.Object)
	} else {
		out, err = m.marker.Object(out, of.Object)
	}
	if err != nil {
		return nil, err
	}
	return append(out, '}', '\n'), nil
}

// table is a table whose rows are marked.
func (m *Member) table(into, object []byte) ([]byte, error) {
	var of struct {
		APIVersion        string            `json:"apiVersion"`
		ColumnDefinitions json.RawMessage   `json:"columnDefinitions"`
		Rows              []json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(object, &of); err != nil {
		return nil, fmt.Errorf("%w: %w", errSyntax, err)
	}
	if err := m.fit(of.ColumnDefinitions); err != nil {
		return nil, err
	}
	into = append(into, `{"kind":"Table","apiVersion":`...)
	into = appendText(into, of.APIVersion)
	into = append(into, `,"metadata":{"resourceVersion":`...)
	into = append(appendText(into, m.marker.version), '}')
	if !m.events.sent && m.events.columns != nil {
		definitions, err := m.events.columns.Definitions()
		if err != nil {
			return nil, err
		}
		into = append(append(into, `,"columnDefinitions":`...), definitions...)
		m.events.sent = true
	} else {
		into = append(into, `,"columnDefinitions":null`...)
	}
	into = append(into, `,"rows":[`...)
	for i, row := range of.Rows {
		if i > 0 {
			into = append(into, ',')
		}
		var err error
		if into, err = m.marker.Row(into, row); err != nil {
			return nil, err
		}
	}
	return append(into, ']', '}'), nil
}

func (m *Member) fit(definitions []byte) error {
	if len(definitions) == 0 || string(definitions) == "null" || string(definitions) == "[]" {
		return nil
	}
	if m.events.columns == nil {
		columns, err := NewColumns(definitions)
		if err != nil {
			return err
		}
		m.events.columns = columns
	}
	return m.events.columns.Fit(&m.marker, definitions)
}

// ItemKind is the kind of the list's items; Table for rows of a table.
func (r *Reader) ItemKind() string { return strings.TrimSuffix(r.Kind, "List") }

// AsEvents translates an item of a list to the ADDED event that a watch would send.
func (r *Reader) AsEvents(item []byte) (Event, error) {
	event := Event{Type: "ADDED", Object: item, Kind: r.ItemKind(), APIVersion: r.APIVersion}
	of := struct {
		named
		Kind   string `json:"kind"`
		Object named  `json:"object"`
	}{}
	if err := json.Unmarshal(item, &of); err != nil {
		return event, fmt.Errorf("%w: %w", errSyntax, err)
	}
	if !r.Table {
		var err error
		event.Kind = cmp.Or(event.Kind, of.Kind) // Items of lists with a trailing kind have their own.
		event.Identity = of.Metadata.Identity
		event.Object, err = typed(item, event.Kind, event.APIVersion)
		return event, err
	}
	event.Identity = of.Object.Metadata.Identity
	table, err := json.Marshal(map[string]any{
		"kind": r.Kind, "apiVersion": r.APIVersion, "metadata": struct{}{},
		"columnDefinitions": json.RawMessage(orNull(r.Columns)), "rows": []json.RawMessage{item},
	})
	event.Object = table
	return event, err
}

// Gone returns the DELETED event for an object of the member of which only the identity is known;
// kind and apiVersion are those of the member's events.
func (m *Member) Gone(of Identity, kind, apiVersion, version string) ([]byte, error) {
	metadata := map[string]any{"name": of.Name, "creationTimestamp": nil}
	if of.Namespace != "" {
		metadata["namespace"] = of.Namespace
	}
	if of.UID != "" {
		metadata["uid"] = of.UID
	}
	object := map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": metadata}
	plain := Member{events: m.events, marker: Marker{Member: m.marker.Member, Label: m.marker.Label, Qualified: m.marker.Qualified, name: -1}}
	if kind == "Table" {
		object["kind"], object["apiVersion"] = "PartialObjectMetadata", apiVersion
		object = map[string]any{"kind": kind, "apiVersion": apiVersion, "metadata": struct{}{}, "columnDefinitions": nil, "rows": []any{
			map[string]any{"cells": plain.cellsOf(of.Name), "object": object},
		}}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return plain.Event(Event{Type: "DELETED", Object: text, Kind: kind}, version)
}

// cellsOf are the cells of a row of which only the name is known.
func (m *Member) cellsOf(name string) []any {
	if m.events.columns == nil {
		return []any{}
	}
	cells := make([]any, len(m.events.columns.columns))
	m.marker.name = m.events.columns.nameAt()
	if m.marker.name >= 0 {
		cells[m.marker.name] = name
	}
	return cells
}

// typed adds kind and apiVersion to an object, because items of a list rely on the list's.
func typed(item []byte, kind, apiVersion string) ([]byte, error) {
	all, err := new(parser).fields(item)
	if err != nil {
		return nil, err
	}
	if known, err := only(all, "kind"); known != nil || err != nil {
		return item, err
	}
	object := appendText([]byte(`{"kind":`), kind)
	object = appendText(append(object, `,"apiVersion":`...), apiVersion)
	return appendFields(object, item, all), nil
}

func orNull(text []byte) []byte {
	if len(text) == 0 {
		return []byte("null")
	}
	return text
}
