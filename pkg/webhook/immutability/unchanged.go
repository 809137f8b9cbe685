// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
)

// kept is true if a field's rule holds without evaluating it, whatever its mode: because the
// request is no update, or because the update leaves the field unchanged. Most updates change few
// of the fields in a policy's rules, so this decides the cost of a review. It only shortens a
// success; the expression decides about possible violations.
func (r *rule) kept(request *Request) bool {
	if r.field == nil {
		return false
	}
	if request.operation != admissionv1.Update {
		return true
	}
	if request.object == nil || request.oldObject == nil {
		return false
	}
	return unchanged(r.field, request.oldObject.Object, request.object.Object)
}

// unchanged is true if both have the same value at the path, or none. False means unknown.
func unchanged(path []step, o, n any) bool {
	for i, s := range path {
		before, ok := o.(map[string]any)
		after, both := n.(map[string]any)
		if !ok || !both {
			return false
		}
		o, n = before[s.name], after[s.name]
		if o == nil && n == nil {
			return true
		}
		if s.key != "" {
			return same(o, n) && haveUniqueKeys(o, s.key, path[i+1:])
		}
	}
	return same(o, n)
}

// same compares JSON values. It runs for every field of every update, where reflection would be
// visible in a profile.
func same(o, n any) bool {
	switch o := o.(type) {
	case map[string]any:
		n, ok := n.(map[string]any)
		if !ok || len(o) != len(n) {
			return false
		}
		for name, value := range o {
			if other, ok := n[name]; !ok || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		n, ok := n.([]any)
		return ok && slices.EqualFunc(o, n, same)
	}
	return o == n
}

// haveUniqueKeys is true for a list of maps that each have a different string at the key: only then is
// an item paired with itself and no other. The expression handles lists in lists.
func haveUniqueKeys(list any, key string, below []step) bool {
	items, ok := list.([]any)
	if !ok || keyed(below) {
		return false
	}
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return false
		}
		name, ok := fields[key].(string)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}
