// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/compare"
)

// maxContested limits the fields that a message about a contested object names.
const maxContested = 5

// Contest describes the change by another client that a correction reverted.
type Contest struct {
	// Manager is the field manager that made the change; empty if managedFields does not show it.
	Manager string
	// Fields are the changed paths. If empty, the object was deleted.
	Fields []string
}

// contestOf compares the object before our write (live, nil if it did not exist) with the object
// after it (written), to find the change that the write reverted.
func contestOf(live, written *unstructured.Unstructured, us string) *Contest {
	if live == nil {
		return &Contest{}
	}
	c := &Contest{}
	for _, detail := range compare.Objects(written, live) {
		c.Fields = append(c.Fields, detail.Path)
	}
	if len(c.Fields) == 0 {
		c.Fields = []string{"/metadata"} // owners, or our own annotations
	}
	c.Manager = lastManager(live.GetManagedFields(), c.Fields, us)
	return c
}

// lastManager returns the manager that wrote last among those that own one of the fields. A removed
// field has no owner; in that case the last writer of any field is returned.
func lastManager(entries []metav1.ManagedFieldsEntry, fields []string, us string) string {
	var holder, writer *metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		if entry.Subresource != "" || entry.Manager == us {
			continue
		}
		if isLater(entry, writer) {
			writer = entry
		}
		if isLater(entry, holder) && slices.ContainsFunc(fields, func(path string) bool { return hasField(entry, path) }) {
			holder = entry
		}
	}
	switch {
	case holder != nil:
		return holder.Manager
	case writer != nil:
		return writer.Manager
	}
	return ""
}

// holderOf returns another manager that owns a field; empty if there is none.
func holderOf(entries []metav1.ManagedFieldsEntry, path, us string) string {
	for i := range entries {
		if entry := &entries[i]; entry.Manager != us && hasField(entry, path) {
			return entry.Manager
		}
	}
	return ""
}

func isLater(entry, than *metav1.ManagedFieldsEntry) bool {
	return than == nil || entry.Time != nil && (than.Time == nil || than.Time.Before(entry.Time))
}

// hasField reports whether an entry covers a path. managedFields identifies list items by key and the
// path by index, so that the comparison ends at a list.
func hasField(entry *metav1.ManagedFieldsEntry, path string) bool {
	fields := fieldsIn(entry)
	if fields == nil {
		return false
	}
	for _, segment := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		next, ok := fields["f:"+segment].(map[string]any)
		if !ok {
			return hasItems(fields)
		}
		fields = next
	}
	return true
}

func hasItems(fields map[string]any) bool {
	for key := range fields {
		if strings.HasPrefix(key, "k:") || strings.HasPrefix(key, "v:") {
			return true
		}
	}
	return false
}

// Message describes the contest to operators of the member, with a remedy. The text is stable while
// the contest lasts, so that the condition does not change.
func (c *Contest) Message(remedy string) string {
	who := fmt.Sprintf("Field manager %q changes", c.Manager)
	if c.Manager == "" {
		who = "Another client changes"
	}
	what := refusal.Names(c.Fields, maxContested)
	if len(c.Fields) == 0 {
		who, what = "Another client deletes", "the object"
	}
	return Shorten(fmt.Sprintf("%s %s after each correction: %s. The agent delays corrections by up to %d minutes, until it needed none for %d minutes", who, what, remedy,
		longestWait/time.Minute, contestLength/time.Minute))
}
