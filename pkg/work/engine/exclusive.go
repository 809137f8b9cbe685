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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Some fields exclude each other: the handlers of a probe, value and valueFrom of a variable, rollingUpdate
// and strategies of another type, two ports of one name. A merge keeps what others or defaults added beside
// the fields of the manifest, so the member refuses the result. The agent then merges again, as if an
// earlier manifest had set what is beside the refused fields.

// leastDepth is the minimum number of names that lead to an object in which the agent removes fields. The
// spec itself holds independent fields.
const leastDepth = 2

// withExcluded returns the last manifest, extended by the fields of live that are beside the refused
// fields and not in the manifest. It returns nil if there are none. Metadata is not extended: its entries
// are independent. With bySchema, errors are those of a CustomResourceDefinition's schema.
func withExcluded(base []byte, wanted, live *unstructured.Unstructured, refused error, bySchema bool) []byte {
	before := map[string]any{}
	if len(base) > 0 && untrusted.UnmarshalJSON(base, untrusted.Object, &before) != nil {
		return nil
	}
	extended := duplicatesNodePort(refused) && exclude([]string{"spec"}, before, wanted.Object, live.Object, addPorts)
	for _, cause := range causesOf(refused) {
		names := fieldNames(cause.Field)
		if slices.Contains(names, "metadata") {
			continue
		}
		if owner := ownerOfPorts(names, cause.Type); owner != nil {
			extended = exclude(owner, before, wanted.Object, live.Object, addPorts) || extended
			continue
		}
		if len(names) == 0 {
			continue
		}
		above, last := names[:len(names)-1], names[len(names)-1]
		for i, name := range names { // A part of what the manifest does not set can be refused.
			extended = exclude(names[:i], before, wanted.Object, live.Object, addField(name)) || extended
		}
		if len(names) > leastDepth {
			extended = exclude(above, before, wanted.Object, live.Object, addFields) || extended
		}
		if isBudget(wanted) && last == "spec" {
			extended = exclude(names, before, wanted.Object, live.Object, addFields) || extended
		}
		if bySchema && len(names) >= leastDepth { // oneOf names the object that breaks it.
			extended = exclude(names, before, wanted.Object, live.Object, addFields) || extended
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

func causesOf(refused error) []metav1.StatusCause {
	var response apierrors.APIStatus
	if !errors.As(refused, &response) || response.Status().Details == nil {
		return nil
	}
	return response.Status().Details.Causes
}

// duplicatesNodePort recognizes the error for a Service with two ports of one node port, for which API
// servers have no machine-readable cause.
func duplicatesNodePort(err error) bool {
	var response apierrors.APIStatus
	return errors.As(err, &response) && strings.HasPrefix(response.Status().Message, "duplicate nodePort")
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

// extension adds to an object of the last manifest what only live has. It reports whether it added
// something.
type extension func(before, wanted, live map[string]any) (added bool)

// addFields adds the fields that only live has.
func addFields(before, wanted, live map[string]any) (added bool) {
	for field, value := range live {
		_, keeps := wanted[field]
		_, known := before[field]
		if !keeps && !known {
			before[field], added = runtime.DeepCopyJSONValue(value), true
		}
	}
	return added
}

// addField adds the field if only live has it: what the member refuses is not of the manifest.
func addField(field string) extension {
	return func(before, wanted, live map[string]any) bool {
		if live[field] == nil || wanted[field] != nil || before[field] != nil {
			return false
		}
		before[field] = runtime.DeepCopyJSONValue(live[field])
		return true
	}
}

// isBudget reports whether the fields of the spec exclude each other: minAvailable and maxUnavailable.
func isBudget(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
}

// ownerOfPorts returns the names that lead to the object with a list of ports, if one of them has a name or
// number that another has too, or lacks the name that it needs beside another. A merge identifies ports by
// their number: if somebody changes the number on the member, the changed port is one of others.
func ownerOfPorts(names []string, cause metav1.CauseType) []string {
	owner := len(names) - 3
	if owner < 0 || names[owner] != ports || cause != metav1.CauseTypeFieldValueDuplicate && cause != metav1.CauseTypeFieldValueRequired {
		return nil
	}
	return names[:owner]
}

// ports is the name of the lists of ports in Services and containers.
const ports = "ports"

// addPorts adds the ports that only live has.
func addPorts(before, wanted, live map[string]any) (added bool) {
	known, _ := before[ports].([]any)
	for _, key := range []string{"port", "containerPort"} {
		for _, port := range items(live[ports]) {
			if port[key] != nil && itemWith(wanted[ports], key, port) == nil && itemWith(known, key, port) == nil {
				known, added = append(known, map[string]any{key: port[key]}), true
			}
		}
	}
	if added {
		before[ports] = known
	}
	return added
}

// exclude goes to an object that the manifest and live have, and extends the object in before. It reports
// whether it added something.
func exclude(names []string, before, wanted, live map[string]any, extend extension) (added bool) {
	if len(names) == 0 {
		return extend(before, wanted, live)
	}
	name := names[0]
	if items, is := live[name].([]any); is {
		return len(names) > 1 && excludeInItem(names[1:], name, items, before, wanted, extend)
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
	if added = exclude(names[1:], within, of, inner, extend); added {
		before[name] = within
	}
	return added
}

// excludeInItem does the same in an item of a list. Items are matched by their names.
func excludeInItem(names []string, list string, items []any, before, wanted map[string]any, extend extension) bool {
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
		return exclude(names[1:], within, of, item, extend)
	}
	within = map[string]any{"name": name}
	if !exclude(names[1:], within, of, item, extend) {
		return false
	}
	all, _ := before[list].([]any)
	before[list] = append(all, within)
	return true
}
