// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// anyItem is the pointer segment that matches all items of a list.
const anyItem = "*"

// fieldPath locates one field of a manifest. It finds the field in the object too, where a list
// item may have another index: an item is identified by its name, if it has one.
type fieldPath struct {
	pointer string
	steps   []fieldStep
}

// fieldStep leads to a map key or a list item.
type fieldStep struct {
	key   string
	item  bool
	name  any // if nil, by place
	place int
}

// parsePointers parses comma-separated JSON pointers.
func parsePointers(text string) ([][]string, error) {
	var all [][]string
	for _, pointer := range strings.Split(text, ",") {
		segments, err := parsePointer(strings.TrimSpace(pointer))
		if err != nil {
			return nil, err
		}
		all = append(all, segments)
	}
	return all, nil
}

// parsePointer parses a JSON pointer (RFC 6901). It rejects pointers to the identity or the status of
// the object.
func parsePointer(pointer string) ([]string, error) {
	rest, is := strings.CutPrefix(pointer, "/")
	if !is || rest == "" {
		return nil, fmt.Errorf("%q is no JSON pointer: it must begin with a slash, as /spec/replicas", pointer)
	}
	segments := strings.Split(rest, "/")
	for place := range segments {
		segments[place] = strings.NewReplacer("~1", "/", "~0", "~").Replace(segments[place])
	}
	switch segments[0] {
	case "apiVersion", "kind", "status":
		return nil, errors.New(pointer + " cannot be left to the member")
	case "metadata":
		if len(segments) < 3 || segments[1] != "labels" && segments[1] != "annotations" {
			return nil, errors.New(pointer + " cannot be left to the member: of the metadata only a label or an annotation can")
		}
	}
	return segments, nil
}

// fieldsAt returns the fields of a document that a pointer matches: one, or one per list item. A
// missing field is included if only maps lead to it.
func fieldsAt(document any, segments []string) []fieldPath {
	all := []fieldPath{{}}
	ends := []any{document}
	for _, segment := range segments {
		var next []fieldPath
		var at []any
		for place, value := range ends {
			found, values := within(all[place], value, segment)
			next, at = append(next, found...), append(at, values...)
		}
		all, ends = next, at
	}
	return all
}

// within returns the fields one segment below a field.
func within(f fieldPath, value any, segment string) (fields []fieldPath, values []any) {
	list, is := value.([]any)
	if !is {
		of, _ := value.(map[string]any)
		return []fieldPath{f.below(segment, fieldStep{key: segment})}, []any{of[segment]}
	}
	for place, item := range list {
		if segment != anyItem && segment != strconv.Itoa(place) {
			continue
		}
		fields = append(fields, f.below(strconv.Itoa(place), fieldStep{item: true, place: place, name: nameOf(item)}))
		values = append(values, item)
	}
	return fields, values
}

func (f fieldPath) below(segment string, step fieldStep) fieldPath {
	return fieldPath{
		pointer: f.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment),
		steps:   append(slices.Clone(f.steps), step),
	}
}

func nameOf(item any) any {
	of, _ := item.(map[string]any)
	return of["name"]
}

func (f fieldPath) in(document any) (value any, has bool) {
	value = document
	for _, step := range f.steps {
		if value, has = step.from(value); !has {
			return nil, false
		}
	}
	return value, true
}

func (s fieldStep) from(value any) (any, bool) {
	if s.item {
		list, _ := value.([]any)
		if at := s.placeIn(list); at >= 0 {
			return list[at], true
		}
		return nil, false
	}
	of, _ := value.(map[string]any)
	inner, has := of[s.key]
	return inner, has
}

// placeIn returns the index of the item in a list, or -1.
func (s fieldStep) placeIn(list []any) int {
	if s.name != nil {
		return slices.IndexFunc(list, func(item any) bool { return apiequality.Semantic.DeepEqual(nameOf(item), s.name) })
	}
	if s.place < len(list) {
		return s.place
	}
	return -1
}

// put sets the field in a document and creates the maps that lead to it. It creates no list items.
func (f fieldPath) put(document, value any) {
	f.write(document, f.steps, runtime.DeepCopyJSONValue(value), true)
}

func (f fieldPath) remove(document any) { f.write(document, f.steps, nil, false) }

func (f fieldPath) write(into any, steps []fieldStep, value any, put bool) {
	step, last := steps[0], len(steps) == 1
	if step.item {
		list, _ := into.([]any)
		at := step.placeIn(list)
		switch {
		case at < 0 || last && !put: // list items are never removed
		case last:
			list[at] = value
		default:
			f.write(list[at], steps[1:], value, put)
		}
		return
	}
	of, is := into.(map[string]any)
	if !is {
		return
	}
	switch inner, has := of[step.key]; {
	case last && put:
		of[step.key] = value
	case last:
		delete(of, step.key)
	case has && inner != nil:
		f.write(inner, steps[1:], value, put)
	case put && !steps[1].item:
		made := map[string]any{}
		of[step.key] = made
		f.write(made, steps[1:], value, put)
	}
}

// isIn reports whether a managedFields entry covers the field. Entries identify list items by key:
// an item without a name matches every item.
func (f fieldPath) isIn(entry *metav1.ManagedFieldsEntry) bool {
	fields := fieldsIn(entry)
	if fields == nil {
		return false
	}
	for place, step := range f.steps {
		if place > 0 && len(fields) == 0 {
			return true // the entry covers the whole value
		}
		next, ok := step.among(fields)
		if !ok {
			return false
		}
		fields = next
	}
	return true
}

// fieldsIn returns the fields of a managedFields entry; nil if they cannot be read.
func fieldsIn(entry *metav1.ManagedFieldsEntry) (fields map[string]any) {
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields
}

// among returns the set of fields that a step leads to.
func (s fieldStep) among(fields map[string]any) (map[string]any, bool) {
	if !s.item {
		next, ok := fields["f:"+s.key].(map[string]any)
		return next, ok
	}
	for key, within := range fields {
		kind, named := itemNamed(key)
		keys, is := named.(map[string]any)
		next, ok := within.(map[string]any)
		if kind == "k" && is && ok && (s.name == nil || keys["name"] == s.name) {
			return next, true
		}
	}
	return nil, false
}

// leavesOf returns the fields that a managedFields set names, without list items.
func leavesOf(fields map[string]any, above []string) [][]string {
	var all [][]string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, is := strings.CutPrefix(key, "f:")
		inner, ok := fields[key].(map[string]any)
		if !is || !ok {
			continue
		}
		path := append(slices.Clone(above), name)
		if len(inner) == 0 {
			all = append(all, path)
			continue
		}
		all = append(all, leavesOf(inner, path)...)
	}
	return all
}
