// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Some fields exclude each other: the handlers of a probe, value and valueFrom of a variable, rollingUpdate
// and strategies of another type. A merge keeps what others or defaults added beside the fields of the
// manifest, so the member refuses the result. The agent then merges again, as if an earlier manifest had
// set what is beside the refused fields.

// leastDepth is the minimum number of names that lead to an object in which the agent removes fields. The
// spec itself holds independent fields.
const leastDepth = 2

// withExcluded returns the last manifest, extended by the fields of live that are beside the refused
// fields and not in the manifest. It returns nil if there are none. Metadata is not extended: its entries
// are independent. With bySchema, errors are those of a CustomResourceDefinition's schema.
func withExcluded(base []byte, wanted, live *unstructured.Unstructured, refused error, bySchema bool) []byte {
	var response apierrors.APIStatus
	if !errors.As(refused, &response) || response.Status().Details == nil {
		return nil
	}
	before := map[string]any{}
	if len(base) > 0 && untrusted.UnmarshalJSON(base, untrusted.Object, &before) != nil {
		return nil
	}
	extended := false
	for _, cause := range response.Status().Details.Causes {
		names := fieldNames(cause.Field)
		if slices.Contains(names, "metadata") {
			continue
		}
		if len(names) > leastDepth {
			extended = exclude(names[:len(names)-1], before, wanted.Object, live.Object) || extended
		}
		if bySchema && len(names) >= leastDepth { // oneOf names the object that breaks it.
			extended = exclude(names, before, wanted.Object, live.Object) || extended
		}
	}
	if !extended {
		return nil
	}
	text, err := json.Marshal(before)
	if err != nil {
		return nil
	}
	return text
}

// fieldNames parses a field of an API server's error, such as spec.containers[0].env[1].value. Keys of
// maps in brackets are not supported: entries of a map do not exclude each other.
func fieldNames(field string) []string {
	var names []string
	for part := range strings.SplitSeq(field, ".") {
		name, indexes, _ := strings.Cut(part, "[")
		names = append(names, name)
		for index := range strings.SplitSeq(indexes, "[") {
			if index = strings.TrimSuffix(index, "]"); index == "" {
				continue
			}
			if _, err := strconv.Atoi(index); err != nil {
				return nil
			}
			names = append(names, index)
		}
	}
	return names
}

// exclude goes to an object that the manifest and live have, and adds the fields that only live has to
// the object in before. It reports whether it added some.
func exclude(names []string, before, wanted, live map[string]any) (added bool) {
	if len(names) == 0 {
		for field, value := range live {
			_, keeps := wanted[field]
			_, known := before[field]
			if !keeps && !known {
				before[field], added = runtime.DeepCopyJSONValue(value), true
			}
		}
		return added
	}
	name := names[0]
	if items, is := live[name].([]any); is {
		return len(names) > 1 && excludeInItem(names[1:], name, items, before, wanted)
	}
	inner, is := live[name].(map[string]any)
	of, has := wanted[name].(map[string]any)
	if !is || !has {
		return false
	}
	within, _ := before[name].(map[string]any)
	if within == nil {
		within = map[string]any{}
	}
	if added = exclude(names[1:], within, of, inner); added {
		before[name] = within
	}
	return added
}

// excludeInItem does the same in an item of a list. Items are matched by their names.
func excludeInItem(names []string, list string, items []any, before, wanted map[string]any) bool {
	index, err := strconv.Atoi(names[0])
	if err != nil || index >= len(items) {
		return false
	}
	name, is := nameOf(items[index]).(string)
	if !is {
		return false
	}
	named := func(all any) map[string]any {
		list, _ := all.([]any)
		if at := slices.IndexFunc(list, func(item any) bool { return nameOf(item) == any(name) }); at >= 0 {
			item, _ := list[at].(map[string]any)
			return item
		}
		return nil
	}
	of, within := named(wanted[list]), named(before[list])
	item, is := items[index].(map[string]any)
	if of == nil || !is {
		return false
	}
	if within != nil {
		return exclude(names[1:], within, of, item)
	}
	within = map[string]any{"name": name}
	if !exclude(names[1:], within, of, item) {
		return false
	}
	all, _ := before[list].([]any)
	before[list] = append(all, within)
	return true
}
