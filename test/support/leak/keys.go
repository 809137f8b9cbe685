// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// Keys returns, a line each, what stands in the keys of all maps that the values
// reach, through pointers, interfaces and fields that are not exported, sync.Map and
// atomic.Pointer included. It looks into structures of packages whose path begins as
// one of within does, and no others; what a function encloses is out of reach. Nobody
// may change the values meanwhile.
func Keys(within []string, values ...any) string {
	w := walk{within: within, seen: map[visit]bool{}}
	for _, value := range values {
		w.value(reflect.ValueOf(value))
	}
	return w.keys.String()
}

type visit struct {
	at   unsafe.Pointer
	kind reflect.Type
}

type walk struct {
	within []string
	seen   map[visit]bool
	keys   strings.Builder
}

func (w *walk) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() || v.Kind() == reflect.Pointer && w.visited(v.UnsafePointer(), v.Type()) {
			return
		}
		w.value(v.Elem())
	case reflect.Struct:
		w.structure(v)
	case reflect.Slice, reflect.Array:
		w.elements(v)
	case reflect.Map:
		if v.IsNil() || w.visited(v.UnsafePointer(), v.Type()) {
			return
		}
		for entries := v.MapRange(); entries.Next(); {
			w.key(entries.Key())
			w.value(entries.Key())
			w.value(entries.Value())
		}
	}
}

func (w *walk) visited(at unsafe.Pointer, kind reflect.Type) bool {
	this := visit{at: at, kind: kind}
	if w.seen[this] {
		return true
	}
	w.seen[this] = true
	return false
}

// structure looks into fields, and asks those types of the standard library that keep
// what they hold behind an untyped pointer.
func (w *walk) structure(v reflect.Value) {
	switch {
	case !v.CanAddr():
	case v.Type() == reflect.TypeFor[sync.Map]():
		(*sync.Map)(v.Addr().UnsafePointer()).Range(func(key, value any) bool {
			w.key(reflect.ValueOf(key))
			w.value(reflect.ValueOf(key))
			w.value(reflect.ValueOf(value))
			return true
		})
		return
	case v.Type().PkgPath() == "sync/atomic" && strings.HasPrefix(v.Type().Name(), "Pointer["):
		w.value(reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).MethodByName("Load").Call(nil)[0])
		return
	}
	if !w.isWithin(v.Type()) {
		return
	}
	for i := range v.NumField() {
		w.value(v.Field(i))
	}
}

func (w *walk) isWithin(t reflect.Type) bool {
	return t.PkgPath() == "" || slices.ContainsFunc(w.within, func(prefix string) bool { return strings.HasPrefix(t.PkgPath(), prefix) })
}

// elements passes over what holds no key, above all bytes.
func (w *walk) elements(v reflect.Value) {
	switch v.Type().Elem().Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		for i := range v.Len() {
			w.value(v.Index(i))
		}
	}
}

func (w *walk) key(key reflect.Value) {
	fmt.Fprintf(&w.keys, "%+v\n", key)
}
