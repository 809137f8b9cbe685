// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/json"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A strategic merge treats list items with equal merge keys as one item, but API servers accept
// several: port 53 for TCP and for UDP, or two variables of one name. The second item would be
// lost. Such a list is removed from the documents before the strategic merge, merged item by item,
// and put into the result.

// documents are the three documents of a three-way merge.
type documents struct{ original, modified, current map[string]any }

// step leads to a field of a map and then, if by is not "", to the list item whose field by has the
// value.
type step struct {
	field string
	by    string
	value any
}

// merged is the result for a list that was removed from the documents.
type merged struct {
	path  []step
	items []any
}

// ambiguous merges a kind that has lists with duplicate merge keys. It returns false if there are
// none.
func ambiguous(keys strategicpatch.LookupPatchMeta, original, modified, current []byte, unchanged []mergepatch.PreconditionFunc) (Patch, bool, error) {
	docs, err := readDocuments(original, modified, current)
	if err != nil {
		return Patch{}, false, err
	}
	lists := takeLists(keys, docs, nil)
	if len(lists) == 0 {
		return Patch{}, false, nil
	}
	rest, err := docs.write()
	if err != nil {
		return Patch{}, true, err
	}
	others, err := strategicpatch.CreateThreeWayMergePatch(rest[0], rest[1], rest[2], keys, true, unchanged...)
	if err != nil {
		return Patch{}, true, err
	}
	text, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(rest[2], others, keys)
	if err != nil {
		return Patch{}, true, err
	}
	result := map[string]any{}
	if err := utiljson.Unmarshal(text, &result); err != nil {
		return Patch{}, true, err
	}
	for _, list := range lists {
		if err := put(result, list); err != nil {
			return Patch{}, true, err
		}
	}
	if text, err = json.Marshal(result); err != nil {
		return Patch{}, true, err
	}
	patch, err := mergePatch(current, text, current, nil)
	return patch, true, err
}

func readDocuments(original, modified, current []byte) (documents, error) {
	docs := documents{original: map[string]any{}, modified: map[string]any{}, current: map[string]any{}}
	for _, doc := range []struct {
		text []byte
		into *map[string]any
	}{{original, &docs.original}, {modified, &docs.modified}, {current, &docs.current}} {
		if len(doc.text) == 0 {
			continue
		}
		if err := utiljson.Unmarshal(doc.text, doc.into); err != nil {
			return documents{}, mergepatch.ErrBadJSONDoc
		}
	}
	return docs, nil
}

func (d documents) write() ([3][]byte, error) {
	var texts [3][]byte
	for place, doc := range []map[string]any{d.original, d.modified, d.current} {
		text, err := json.Marshal(doc)
		if err != nil {
			return texts, err
		}
		texts[place] = text
	}
	return texts, nil
}

// takeLists removes ambiguous lists from the documents and returns their merged items.
func takeLists(keys strategicpatch.LookupPatchMeta, d documents, path []step) []merged {
	var lists []merged
	for _, field := range sets.List(sets.KeySet(d.modified).Union(sets.KeySet(d.current))) {
		if field == "metadata" && path == nil {
			continue // the wanted owners include the present ones
		}
		wanted, is := d.modified[field], d.current[field]
		if asItems(wanted) != nil || asItems(is) != nil {
			lists = append(lists, takeList(keys, d, path, field)...)
			continue
		}
		below := documents{asMap(d.original[field]), asMap(wanted), asMap(is)}
		if len(below.modified) == 0 && len(below.current) == 0 {
			continue
		}
		if inner, _, err := keys.LookupPatchMetadataForStruct(field); err == nil {
			lists = append(lists, takeLists(inner, below, append(slices.Clone(path), step{field: field}))...)
		}
	}
	return lists
}

// takeList does the same for one list, or for the lists in its items.
func takeList(keys strategicpatch.LookupPatchMeta, d documents, path []step, field string) []merged {
	inner, meta, err := keys.LookupPatchMetadataForSlice(field)
	if err != nil || meta.GetPatchMergeKey() == "" || !slices.Contains(meta.GetPatchStrategies(), "merge") {
		return nil // this list is atomic
	}
	key := meta.GetPatchMergeKey()
	original, wanted, is := asItems(d.original[field]), asItems(d.modified[field]), asItems(d.current[field])
	if isUnique(key, wanted) && isUnique(key, is) {
		var lists []merged
		for _, item := range wanted {
			there := itemBy(is, key, item[key])
			if there == nil {
				continue
			}
			below := documents{itemBy(original, key, item[key]), item, there}
			lists = append(lists, takeLists(inner, below, append(slices.Clone(path), step{field, key, item[key]}))...)
		}
		return lists
	}
	items := mergeItems(key, original, wanted, is)
	delete(d.original, field)
	delete(d.modified, field)
	delete(d.current, field)
	return []merged{{append(slices.Clone(path), step{field: field}), items}}
}

// mergeItems returns the merged list: the wanted items, each with fields that others added on the
// member, and the items of others. Items whose merge key is in the manifest or in the last manifest
// are ours.
func mergeItems(key string, original, wanted, is []map[string]any) []any {
	used := make([]bool, len(is))
	var result []any
	sameOrder, last := true, -1
	for _, item := range wanted {
		at := -1
		for place, there := range is {
			if !used[place] && covers(there, item) && !hasLost(there, item, original) {
				at = place
				break
			}
		}
		if at < 0 {
			sameOrder = false
			result = append(result, item)
			continue
		}
		used[at] = true
		sameOrder, last = sameOrder && at > last, at
		result = append(result, is[at])
	}
	for place, there := range is {
		if used[place] {
			continue
		}
		if hasKey(wanted, key, there[key]) || hasKey(original, key, there[key]) {
			sameOrder = false
			continue
		}
		result = append(result, there)
	}
	if sameOrder { // only items of others are in between
		return asAny(is)
	}
	return result
}

// hasLost reports whether the item is one of an earlier manifest that had more fields than this
// one.
func hasLost(there, wanted map[string]any, original []map[string]any) bool {
	return slices.ContainsFunc(original, func(before map[string]any) bool { return covers(there, before) && !covers(wanted, before) })
}

// put sets a list in a document from which it was removed.
func put(document map[string]any, list merged) error {
	at := document
	for _, step := range list.path[:len(list.path)-1] {
		next := asMap(at[step.field])
		if step.by != "" {
			next = itemBy(asItems(at[step.field]), step.by, step.value)
		}
		if next == nil && step.by == "" {
			next = map[string]any{}
			at[step.field] = next
		}
		if next == nil {
			return fmt.Errorf("no item of %s has %s %v", step.field, step.by, step.value)
		}
		at = next
	}
	field := list.path[len(list.path)-1].field
	if len(list.items) == 0 {
		delete(at, field)
		return nil
	}
	at[field] = list.items
	return nil
}

// covers reports whether an object has all fields of another. Lists are compared item by item.
func covers(object, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		has, ok := object.(map[string]any)
		for key, value := range wanted {
			if !ok || !covers(has[key], value) {
				return false
			}
		}
		return true
	case []any:
		has, ok := object.([]any)
		if !ok || len(has) != len(wanted) {
			return false
		}
		for place, value := range wanted {
			if !covers(has[place], value) {
				return false
			}
		}
		return true
	}
	return apiequality.Semantic.DeepEqual(object, wanted)
}

func asMap(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}

// asItems returns the items of a list of maps; nil for other values.
func asItems(value any) []map[string]any {
	list, _ := value.([]any)
	var items []map[string]any
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil
		}
		items = append(items, fields)
	}
	return items
}

func asAny(items []map[string]any) []any {
	list := make([]any, 0, len(items))
	for _, item := range items {
		list = append(list, item)
	}
	return list
}

func isUnique(key string, items []map[string]any) bool {
	seen := map[any]bool{}
	for _, item := range items {
		value := item[key]
		switch value.(type) {
		case map[string]any, []any:
			return true // not a valid key; the API server rejects it
		}
		if seen[value] {
			return false
		}
		seen[value] = true
	}
	return true
}

func hasKey(items []map[string]any, key string, value any) bool {
	return itemBy(items, key, value) != nil
}

func itemBy(items []map[string]any, key string, value any) map[string]any {
	at := slices.IndexFunc(items, func(item map[string]any) bool { return apiequality.Semantic.DeepEqual(item[key], value) })
	if at < 0 {
		return nil
	}
	return items[at]
}
