// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/compare"
)

// maxContested is how many fields a message about a contested object names.
const maxContested = 5

// contest is what a repair had to undo.
type contest struct {
	// manager is the field manager who did it, as far as the object tells.
	manager string
	// fields are the paths that were changed. None: the object was deleted.
	fields []string
}

// contestOf finds out what a repair has undone: live was the object before, nil if
// there was none, written is what became of it.
func contestOf(live, written *unstructured.Unstructured) *contest {
	if live == nil {
		return &contest{}
	}
	c := &contest{}
	for _, detail := range compare.Objects(written, live) {
		c.fields = append(c.fields, detail.Path)
	}
	if len(c.fields) == 0 {
		c.fields = []string{"/metadata"} // owners, or our own annotations
	}
	c.manager = lastManager(live.GetManagedFields(), c.fields)
	return c
}

// lastManager is who wrote last among those that hold one of the fields; if nobody
// does, since a removed field is held by nobody, who wrote last at all.
func lastManager(entries []metav1.ManagedFieldsEntry, fields []string) string {
	var holder, writer *metav1.ManagedFieldsEntry
	for i := range entries {
		entry := &entries[i]
		if entry.Subresource != "" || entry.Manager == FieldManager {
			continue
		}
		if isLater(entry, writer) {
			writer = entry
		}
		if isLater(entry, holder) && slices.ContainsFunc(fields, func(path string) bool { return holds(entry, path) }) {
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

func isLater(entry, than *metav1.ManagedFieldsEntry) bool {
	return than == nil || entry.Time != nil && (than.Time == nil || than.Time.Before(entry.Time))
}

// holds reports whether an entry covers a path. Items of lists are named by their
// keys there and by their places here, so that a list is as far as it looks.
func holds(entry *metav1.ManagedFieldsEntry, path string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields map[string]any
	if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
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

// message is for people who operate the member. It stays the same as long as the
// contest does.
func (c *contest) message() string {
	who := fmt.Sprintf("Field manager %q changes", c.manager)
	if c.manager == "" {
		who = "Somebody changes"
	}
	what := strings.Join(c.fields, ", ")
	if more := len(c.fields) - maxContested; more > 0 {
		what = fmt.Sprintf("%s and %d more", strings.Join(c.fields[:maxContested], ", "), more)
	}
	if len(c.fields) == 0 {
		who, what = "Somebody deletes", "the object"
	}
	return shorten(fmt.Sprintf("%s %s again after each repair: stop it there, or take this out of the placement. "+
		"Repairs wait up to %d minutes until there was none for %d", who, what,
		longestWait/time.Minute, quietUntilPast/time.Minute))
}

// condition is the Contested condition of a manifest.
func (c *contest) condition() metav1.Condition {
	return metav1.Condition{
		Type:    placementv1beta1.ConditionContested,
		Status:  metav1.ConditionTrue,
		Reason:  placementv1beta1.ReasonRepairsReverted,
		Message: c.message(),
	}
}
