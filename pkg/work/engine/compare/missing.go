// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// NotKept lists the fields of a manifest that the object does not have with the same value.
// Additional fields of the object are ignored, because API servers and controllers fill in fields.
// Kinds in the scheme are compared by their Go types: 0.5 and 500m are the same quantity, and a
// defaulted empty value is no loss. Operators write values of custom resources in another form too.
//
// It runs after each write and must not report false positives: in doubt it reports nothing.
func NotKept(known *runtime.Scheme, wanted, object *unstructured.Unstructured) []Detail {
	k := &keeper{
		known: known, wanted: wanted,
		finder: finder{secret: manifest.IsSecret(wanted.GroupVersionKind().GroupKind())},
		typed:  sync.OnceValue(func() map[string]any { return normalised(known, wanted) }),
	}
	meta := lookupOf(known, wanted.GroupVersionKind())
	for _, field := range sets.List(sets.KeySet(wanted.Object)) {
		switch {
		case field == "status" || field == "apiVersion" || field == "kind" || isUnsettled(wanted, field):
		case field == "metadata":
			k.metadata(asFields(wanted.Object[field]), asFields(object.Object[field]))
		default:
			k.field(meta, nil, wanted.Object, object.Object, field)
		}
	}
	return k.found
}

// isUnsettled recognizes fields that an API server rewrites in its own form, such as the subsets of
// Endpoints.
func isUnsettled(of *unstructured.Unstructured, field string) bool {
	return field == "subsets" && of.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Endpoints"}
}

// isConverted recognizes annotations that API servers derive from fields or status of another API
// version.
func isConverted(annotation string) bool {
	return annotation == "deprecated.daemonset.template.generation" || strings.HasPrefix(annotation, "autoscaling.alpha.kubernetes.io/")
}

// keeper collects the fields of a manifest that the object did not keep.
type keeper struct {
	finder
	known  *runtime.Scheme
	wanted *unstructured.Unstructured
	// typed returns the manifest after a round trip through its Go type; nil if it has none. It is
	// lazy, because few manifests need it.
	typed func() map[string]any
}

// metadata compares labels, annotations and finalizers.
func (k *keeper) metadata(wanted, is map[string]any) {
	for _, field := range []string{"annotations", "labels"} {
		values, there := asFields(wanted[field]), asFields(is[field])
		for _, key := range sets.List(sets.KeySet(values)) {
			if !isConverted(key) && !manifest.Equal(values[key], there[key]) && !(isEmpty(values[key]) && there[key] == nil) {
				k.miss([]string{"metadata", field, key}, values[key], there[key])
			}
		}
	}
	there, _ := is["finalizers"].([]any)
	finalizers, _ := wanted["finalizers"].([]any)
	for _, finalizer := range finalizers {
		if !slices.Contains(there, finalizer) {
			k.miss([]string{"metadata", "finalizers"}, finalizers, is["finalizers"])
			return
		}
	}
}

// field compares one field of a map. A null equals a missing value, and so does an empty value that
// the object does not have.
func (k *keeper) field(meta strategicpatch.LookupPatchMeta, path []string, wanted, is map[string]any, field string) {
	value, there := wanted[field], is[field]
	if len(k.found) >= MaxDetails || value == nil || there == nil && isEmpty(value) || field == "creationTimestamp" && isMetadata(path) {
		return
	}
	at := append(slices.Clone(path), field)
	if list, ok := value.([]any); ok {
		items, merges := belowItems(meta, field)
		k.list(items, merges || field == "tolerations" || field == "imagePullSecrets", at, list, there)
		return
	}
	k.value(below(meta, field), at, value, there)
}

func (k *keeper) value(meta strategicpatch.LookupPatchMeta, at []string, value, there any) {
	switch value := value.(type) {
	case map[string]any:
		fields, ok := there.(map[string]any)
		if !ok {
			k.miss(at, value, there)
			return
		}
		for _, key := range sets.List(sets.KeySet(value)) {
			k.field(meta, at, value, fields, key)
		}
	case []any:
		k.list(nil, true, at, value, there)
	default:
		if !manifest.Equal(value, there) {
			k.miss(at, value, there)
		}
	}
}

// list compares a list. If it is merged by key, or holds tolerations (which admission extends) or pull
// secrets (which OpenShift extends), the object must contain the manifest's items. Other lists must have no additional items, and their
// scalars must be in the same order. Lists of kinds without a Go type may be of either sort. The
// loss of a duplicate item is ignored.
func (k *keeper) list(meta strategicpatch.LookupPatchMeta, mayGrow bool, path []string, wanted []any, there any) {
	is, ok := there.([]any)
	if !ok {
		k.miss(path, wanted, there)
		return
	}
	used := make([]bool, len(is))
	for place, item := range wanted {
		if at := k.find(meta, path, place, item, is, used, mayGrow); at >= 0 {
			used[at] = true
			continue
		}
		if !slices.ContainsFunc(wanted[:place], func(before any) bool { return manifest.Equal(before, item) }) {
			k.item(meta, path, place, item, is)
			return
		}
	}
	if !mayGrow && len(is) > len(wanted) {
		k.miss(path, wanted, is)
	}
}

// find returns the index of an item that has all fields of the wanted one, or -1. It tries the same
// index first.
func (k *keeper) find(meta strategicpatch.LookupPatchMeta, path []string, place int, wanted any, is []any, used []bool, anyOrder bool) int {
	at := append(slices.Clone(path), strconv.Itoa(place))
	if place < len(is) && !used[place] && k.keeps(meta, at, wanted, is[place]) {
		return place
	}
	if _, fields := wanted.(map[string]any); !fields && !anyOrder {
		return -1
	}
	for place := range is {
		if !used[place] && k.keeps(meta, at, wanted, is[place]) {
			return place
		}
	}
	return -1
}

// keeps reports whether an item has all fields of the wanted one.
func (k *keeper) keeps(meta strategicpatch.LookupPatchMeta, at []string, wanted, is any) bool {
	try := &keeper{finder: finder{secret: k.secret}, known: k.known, wanted: k.wanted, typed: k.typed}
	try.value(meta, at, wanted, is)
	return len(try.found) == 0
}

// item reports the missing fields of an item, compared with the item of the same name or index.
func (k *keeper) item(meta strategicpatch.LookupPatchMeta, path []string, place int, wanted any, is []any) {
	var there any
	if place < len(is) {
		there = is[place]
	}
	if name, has := asFields(wanted)["name"]; has {
		there = nil
		if at := slices.IndexFunc(is, func(item any) bool { return asFields(item)["name"] == name }); at >= 0 {
			there = is[at]
		}
	}
	at, before := append(slices.Clone(path), strconv.Itoa(place)), len(k.found)
	k.value(meta, at, wanted, there)
	if len(k.found) == before {
		k.miss(at, wanted, there)
	}
}

// miss reports a field, unless the API server only encodes the same value differently.
func (k *keeper) miss(path []string, wanted, is any) {
	if k.isTyped(path, wanted, is) || path[0] != "metadata" && k.typed() == nil && isSameValue(wanted, is) {
		return
	}
	at, text := pointer(path), ""
	if is != nil {
		text = k.text(at, is)
	}
	k.add(at, k.text(at, wanted), text)
}

// isTyped reports whether the value equals the manifest's value after the round trip through the Go
// type. An empty value requests the default if the type omits it, or writes it for a missing field too,
// such as the apiGroup of a roleRef.
func (k *keeper) isTyped(path []string, wanted, is any) bool {
	at, found := valueAt(k.typed(), path)
	switch {
	case !found:
		return false
	case at == nil:
		return is != nil && isEmpty(wanted) && k.typed() != nil
	case manifest.Equal(at, is):
		return true
	}
	return is != nil && isEmpty(wanted) && k.isWrittenAlways(path, at)
}

// isWrittenAlways reports whether the Go type writes the value for a manifest without the field.
func (k *keeper) isWrittenAlways(path []string, value any) bool {
	without := k.wanted.DeepCopy()
	parent, _ := valueAt(without.Object, path[:len(path)-1])
	fields, ok := parent.(map[string]any)
	if !ok {
		return false
	}
	delete(fields, path[len(path)-1])
	at, found := valueAt(normalised(k.known, without), path)
	return found && at != nil && manifest.Equal(at, value)
}

// valueAt returns the value at a path, nil if its map lacks it; false if the path leads nowhere.
func valueAt(fields map[string]any, path []string) (any, bool) {
	at := any(fields)
	for _, segment := range path {
		switch value := at.(type) {
		case map[string]any:
			at = value[segment]
		case []any:
			place, err := strconv.Atoi(segment)
			if err != nil || place >= len(value) {
				return nil, false
			}
			at = value[place]
		default:
			return nil, false
		}
	}
	return at, true
}

// isSameValue reports whether two values are the same quantity, duration or time. Webhooks of operators
// decode custom resources into Go types, and encode them again.
func isSameValue(a, b any) bool {
	x, ok := scalarText(a)
	y, also := scalarText(b)
	if !ok || !also {
		return false
	}
	one, err := untrusted.Quantity(x)
	other, failed := untrusted.Quantity(y)
	if err == nil && failed == nil {
		return one.Cmp(other) == 0
	}
	return isSameParsed(x, y, time.ParseDuration) ||
		isSameParsed(x, y, func(text string) (int64, error) {
			parsed, err := time.Parse(time.RFC3339, text)
			return parsed.UnixNano(), err
		})
}

func isSameParsed[T comparable](a, b string, parse func(string) (T, error)) bool {
	x, err := parse(a)
	y, failed := parse(b)
	return err == nil && failed == nil && x == y
}

func scalarText(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case int64, float64:
		return fmt.Sprint(value), true
	}
	return "", false
}

// normalised returns the manifest after a round trip through its Go type; nil if that fails.
func normalised(known *runtime.Scheme, wanted *unstructured.Unstructured) map[string]any {
	object, err := known.New(wanted.GroupVersionKind())
	if err != nil {
		return nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, object); err != nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil
	}
	return fields
}

// lookupOf returns the merge rules of a kind's lists; nil if it has no Go type.
func lookupOf(known *runtime.Scheme, kind schema.GroupVersionKind) strategicpatch.LookupPatchMeta {
	object, err := known.New(kind)
	if err != nil {
		return nil
	}
	meta, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return nil
	}
	return meta
}

func below(meta strategicpatch.LookupPatchMeta, field string) strategicpatch.LookupPatchMeta {
	if meta == nil {
		return nil
	}
	inner, _, err := meta.LookupPatchMetadataForStruct(field)
	if err != nil {
		return nil
	}
	return inner
}

func belowItems(meta strategicpatch.LookupPatchMeta, field string) (strategicpatch.LookupPatchMeta, bool) {
	if meta == nil {
		return nil, true
	}
	inner, how, err := meta.LookupPatchMetadataForSlice(field)
	if err != nil {
		return nil, false
	}
	return inner, how.GetPatchMergeKey() != "" || slices.Contains(how.GetPatchStrategies(), "merge")
}

// isEmpty reports whether a value is one that an API server omits.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case map[string]any:
		for _, inner := range value {
			if !isEmpty(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return manifest.Equal(value, int64(0))
}

func isMetadata(path []string) bool { return len(path) > 0 && path[len(path)-1] == "metadata" }

func asFields(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

func pointer(path []string) string {
	var text strings.Builder
	for _, segment := range path {
		text.WriteString("/" + escape(segment))
	}
	return text.String()
}
