// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intern

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
)

const (
	// longest is the length in bytes of the longest string that is looked up. Longer ones, such as
	// keys and certificates, belong to one object only.
	longest = 256
	// generation is how many strings are kept before those of the previous generation are dropped,
	// unless they were used again. Two generations hold at most 4 MiB.
	generation = 8192
)

// Table holds shared strings. Several caches can use it at once. The zero value is ready.
type Table struct {
	mu             sync.Mutex
	recent, before map[string]string
}

// Transform reduces an object that a cache has just read and nobody else has yet, and returns it.
// It never fails: unknown types stay unchanged. It is a TransformFunc of client-go's informers.
func (t *Table) Transform(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil) // managedFields are a third of an object, and nobody reads them from a cache.
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.walk(reflect.ValueOf(object))
	return object, nil
}

// After is a transform that reduces the result of another one.
func (t *Table) After(first toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		object, err := first(object)
		if err != nil {
			return nil, err
		}
		return t.Transform(object)
	}
}

// walk visits everything that can be set. It skips unexported fields, for example of times and
// quantities, and values in interfaces, such as all of an Unstructured.
func (t *Table) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		t.walk(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			t.walk(v.Field(i))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString(t.same(v.String()))
		}
	case reflect.Slice:
		t.walkSlice(v)
	case reflect.Map:
		t.walkMap(v)
	}
}

// walkSlice drops the spare capacity that a decoder has left.
func (t *Table) walkSlice(v reflect.Value) {
	if !v.CanSet() || v.Len() == 0 || v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	if v.Cap() > v.Len() {
		exact := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(exact, v)
		v.Set(exact)
	}
	for i := range v.Len() {
		t.walk(v.Index(i))
	}
}

// walkMap replaces keys by equal ones, as setting them does, and string values. It does not look
// below pointers and slices in other values.
func (t *Table) walkMap(v reflect.Value) {
	if !v.CanSet() || v.Type().Key().Kind() != reflect.String {
		return
	}
	values := v.Type().Elem().Kind() == reflect.String
	for each := v.MapRange(); each.Next(); {
		key, value := reflect.New(v.Type().Key()).Elem(), each.Value()
		key.SetString(t.same(each.Key().String()))
		if values {
			value = reflect.New(v.Type().Elem()).Elem()
			value.SetString(t.same(each.Value().String()))
		}
		v.SetMapIndex(key, value)
	}
}

// same returns an equal string, a shared one if possible. It must be called with mu held.
func (t *Table) same(text string) string {
	if text == "" || len(text) > longest {
		return text
	}
	if known, ok := t.recent[text]; ok {
		return known
	}
	if known, ok := t.before[text]; ok {
		text = known
	}
	if t.recent == nil || len(t.recent) == generation {
		t.before, t.recent = t.recent, make(map[string]string, generation)
	}
	t.recent[text] = text
	return text
}
