// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

// merging is a merger with its limits, and the lines that it has returned.
type merging struct {
	*merger
	t        *testing.T
	cursors  *cursors
	names    []string
	versions []string
}

func newMerging(t *testing.T, from versions, limit int64, o watchOptions, members ...string) *merging {
	c := newCursors(trailsLimit)
	m := &merging{t: t, cursors: c, names: members, merger: newMerger(c.begin(members, from), &budget{limit: limit}, false, o)}
	for _, member := range members {
		m.join(member)
	}
	return m
}

const roomy = 1 << 20

// gets adds a message of a member, and returns the events of the lines as type, member and name.
func (m *merging) gets(member string, message memberEvent) []string {
	m.t.Helper()
	message.member = member
	if message.began != nil {
		message.began.member = member
	}
	lines, err := m.add(message)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.read(lines)
}

func (m *merging) read(lines []byte) (events []string) {
	m.t.Helper()
	for line := range bytes.Lines(lines) {
		var event struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(line, &event); err != nil {
			m.t.Fatal(err)
		}
		text := event.Type
		if of := event.Object.Labels[viewv1alpha1.LabelMember]; of != "" {
			text += " " + of + "/" + event.Object.Name
		}
		if event.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			text += " initial"
		}
		events, m.versions = append(events, text), append(m.versions, event.Object.ResourceVersion)
	}
	return events
}

func (m *merging) wants(got []string, want ...string) {
	m.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Error(diff)
	}
}

func success() memberEvent {
	return memberEvent{began: &reply{code: http.StatusOK, header: http.Header{}}}
}

func listed(version string) memberEvent {
	return memberEvent{listing: -1, listed: true, version: version, kind: "Pod", apiVersion: "v1"}
}

func podEvent(kind, name, version string) memberEvent {
	return memberEvent{version: version, kind: "Pod", apiVersion: "v1", event: &splice.Event{
		Type: kind, Kind: "Pod", APIVersion: "v1", Identity: splice.Identity{Namespace: "shop", Name: name},
		Object: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `","namespace":"shop"}}`),
	}}
}

// list adds a list of a member and returns the events of its lines.
func (m *merging) list(member, version string, names ...string) (events []string) {
	m.t.Helper()
	events = m.gets(member, memberEvent{listing: 1})
	for _, name := range names {
		events = append(events, m.gets(member, podEvent("ADDED", name, ""))...)
	}
	return append(events, m.gets(member, listed(version))...)
}

func TestMerger_EventsHaveGrowingCursorsThatResume(t *testing.T) {
	m := newMerging(t, versions{"a": 3, "b": 4}, roomy, watchOptions{}, "a", "b")
	m.wants(m.gets("a", podEvent("ADDED", "one", "5")), "ADDED a/one")
	m.wants(m.gets("b", podEvent("MODIFIED", "two", "9")), "MODIFIED b/two")
	m.wants(m.gets("a", podEvent("DELETED", "one", "7")), "DELETED a/one")
	m.wants(m.gets("b", memberEvent{version: "11"}))
	before := uint64(0)
	for i, want := range []versions{{"a": 5, "b": 4}, {"a": 5, "b": 11}, {"a": 7, "b": 11}} {
		cursor := number(t, m.versions[i])
		if cursor <= before {
			t.Errorf("cursor %d follows %d", cursor, before)
		}
		before = cursor
		if got, err := m.cursors.at(cursor, m.names); err != nil || !cmp.Equal(want, got) {
			t.Errorf("after event %d: got %v, %v, want %v", i, got, err, want)
		}
	}
}

func TestMerger_SendsDifferenceAfterCompaction(t *testing.T) {
	m := newMerging(t, versions{}, roomy, watchOptions{}, "a")
	m.wants(m.gets("a", success()))
	m.wants(m.list("a", "5", "one", "two"), "ADDED a/one", "ADDED a/two")
	m.wants(m.gets("a", memberEvent{compacted: true}))
	m.wants(m.list("a", "9", "two", "three"), "MODIFIED a/two", "ADDED a/three", "DELETED a/one")
}

func TestMerger_InitialBookmarkFollowsLastList(t *testing.T) {
	m := newMerging(t, versions{}, roomy, watchOptions{bookmarks: true, initial: true}, "a", "b", "c")
	m.wants(m.gets("a", success()))
	m.wants(m.list("a", "5", "one"), "ADDED a/one")
	m.wants(m.gets("b", success()))
	m.wants(m.gets("c", memberEvent{began: &reply{code: http.StatusNotFound}}))
	m.wants(m.read(m.bookmark()))
	m.wants(m.list("b", "6", "two"), "ADDED b/two", "BOOKMARK initial")
	m.wants(m.read(m.bookmark()), "BOOKMARK")
	want := versions{"a": 5, "b": 6}
	for _, version := range m.versions[2:] {
		if got, err := m.cursors.versionsOf(version, m.names); err != nil || !cmp.Equal(want, got) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}

func TestMerger_MemberThatLeavesIsDeletedObjectByObject(t *testing.T) {
	m := newMerging(t, versions{}, roomy, watchOptions{}, "a", "b")
	m.wants(m.gets("a", success()))
	m.wants(m.list("a", "5", "two", "one"), "ADDED a/two", "ADDED a/one")
	lines, err := m.leave("a")
	if err != nil {
		t.Fatal(err)
	}
	m.wants(m.read(lines), "DELETED a/one", "DELETED a/two")
	if used := m.budget.used.Load(); used != 0 {
		t.Errorf("%d bytes are not released", used)
	}
}

// The caller lists again if it is not known which objects it has.
func TestMerger_EndsWatchThatDoesNotKnowItsObjects(t *testing.T) {
	for name, c := range map[string]struct {
		from  versions
		limit int64
	}{
		"because it was resumed":        {from: versions{"a": 5}, limit: roomy},
		"because it exceeds its memory": {from: versions{}, limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for reason, ends := range map[string]func(m *merging) error{
				"compaction": func(m *merging) error { return errorOf(m.add(memberEvent{member: "a", compacted: true})) },
				"broken list": func(m *merging) error {
					return errorOf(m.add(memberEvent{member: "a", listing: -1}))
				},
				"member leaves": func(m *merging) error { return errorOf(m.leave("a")) },
			} {
				m := newMerging(t, c.from, c.limit, watchOptions{}, "a")
				m.gets("a", success())
				m.gets("a", podEvent("ADDED", "one", "6"))
				if err := ends(m); !apierrors.IsResourceExpired(err) {
					t.Errorf("%s: got %v", reason, err)
				}
				if m.close(); m.budget.used.Load() != 0 {
					t.Errorf("%s: %d bytes are not released", reason, m.budget.used.Load())
				}
			}
		})
	}
}

func errorOf(_ []byte, err error) error { return err }
