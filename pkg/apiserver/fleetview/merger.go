// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview/splice"
)

// merger merges what the readers of members report into the lines of one watch. It neither reads nor
// writes, and only one goroutine uses it.
type merger struct {
	// trail is the position of the watch, budget the memory for what it has sent.
	trail  *trail
	budget *budget
	// lines encodes events of members as lines of the watch.
	lines *splice.Events
	// bookmarks is true if the caller wants bookmarks; initial while it waits for the one after
	// all present objects.
	bookmarks, initial bool

	members map[string]*mergedMember
	// unreplied is how many members have not replied yet.
	unreplied int
	missing   missingMembers
	// listing is how many members' lists are in progress, kind and apiVersion are those of the
	// objects.
	listing          int
	kind, apiVersion string
	// marked is when the last bookmark was sent.
	marked time.Time
}

// mergedMember is what the merger knows about one member.
type mergedMember struct {
	out    *splice.Member
	memory *memory
	// replied is true once the member's first reply was reported, succeeded once it was a success.
	replied, succeeded bool
	// listing is true while a list of the member is being sent; tried is true once a list has ended,
	// successfully or not.
	listing, tried bool
}

func newMerger(at *trail, of *budget, qualified bool, o watchOptions) *merger {
	return &merger{
		trail: at, budget: of, lines: splice.NewEvents(viewv1alpha1.LabelMember, qualified), bookmarks: o.bookmarks, initial: o.initial,
		members: map[string]*mergedMember{}, marked: time.Now(),
	}
}

// join adds a member and returns the version from which it is read.
func (m *merger) join(member string) (version string) {
	version = m.trail.at(member)
	m.unreplied++
	m.members[member] = &mergedMember{out: m.lines.Member(member), memory: newMemory(m.budget, version == "")}
	return version
}

// leave removes a member whose reader has stopped, and returns the DELETED events of its objects. A
// watch that was resumed does not know them: its caller lists again.
func (m *merger) leave(member string) ([]byte, error) {
	of := m.members[member]
	if of.listing {
		m.listing--
	}
	if !of.replied {
		m.unreplied--
	}
	if !of.memory.whole {
		return nil, errExpired(member, "has left")
	}
	lines, err := m.gone(member, of.memory.forget(true))
	delete(m.members, member)
	return lines, err
}

// close releases the memory budget of the watch.
func (m *merger) close() {
	for _, of := range m.members {
		of.memory.drop()
	}
}

// add encodes a message of a reader as lines, and records the member's position.
func (m *merger) add(message memberEvent) (lines []byte, err error) {
	member, of := message.member, m.members[message.member]
	if message.compacted && !of.memory.whole {
		return nil, errExpired(member, "has compacted the position of the watch")
	}
	if message.began != nil {
		m.began(of, message.began)
	}
	if message.kind != "" {
		m.kind, m.apiVersion = message.kind, message.apiVersion
	}
	if err := m.list(member, message); err != nil {
		return nil, err
	}
	if message.event != nil {
		if lines, err = m.line(member, message.event, message.version); err != nil {
			return nil, badGateway(member, err)
		}
	}
	if message.listed {
		if lines, err = m.gone(member, of.memory.forget(false)); err != nil {
			return nil, err
		}
	}
	if message.version != "" {
		m.trail.reach(member, message.version)
	}
	if message.began != nil || message.listing < 0 {
		lines = append(lines, m.beginning()...)
	}
	return lines, nil
}

func (m *merger) began(of *mergedMember, first *reply) {
	if !of.replied {
		m.unreplied--
	}
	of.replied, of.succeeded = true, first.ok()
	m.missing.total = len(m.members)
	if !first.ok() {
		m.missing.without(first)
		return
	}
	m.missing.recovered(first.member)
	m.missing.warned(first.header)
}

func (m *merger) list(member string, message memberEvent) error {
	of := m.members[member]
	m.listing += message.listing
	switch {
	case message.listing > 0:
		of.listing = true
		of.memory.round++
	case message.listing < 0:
		of.listing, of.tried = false, true
		if !message.listed {
			m.missing.addLate(member)
		}
		if !message.listed && !of.memory.whole {
			return errExpired(member, "has broken off, and its earlier objects are not known")
		}
	}
	return nil
}

// line encodes an event. An object that is listed again was already sent.
func (m *merger) line(member string, event *splice.Event, version string) ([]byte, error) {
	of := m.members[member]
	if event.Type == "DELETED" {
		of.memory.remove(event.Identity)
	} else if before := of.memory.add(event.Identity); before && event.Type == "ADDED" {
		event.Type = "MODIFIED"
	}
	return of.out.Event(*event, m.trail.step(member, version))
}

// gone are the DELETED events for objects of a member.
func (m *merger) gone(member string, all []splice.Identity) ([]byte, error) {
	slices.SortFunc(all, func(a, b splice.Identity) int { return strings.Compare(keyOf(a), keyOf(b)) })
	var lines []byte
	for _, of := range all {
		line, err := m.members[member].out.Gone(of, m.kind, m.apiVersion, m.trail.step(member, ""))
		if err != nil {
			return nil, badGateway(member, err)
		}
		lines = append(lines, line...)
	}
	return lines, nil
}

// beginning is the bookmark after all present objects. It is sent once
// every member that replied has been listed.
func (m *merger) beginning() []byte {
	if !m.initial || m.unreplied > 0 || m.listing > 0 {
		return nil
	}
	for _, of := range m.members {
		if of.succeeded && !of.tried {
			return nil
		}
	}
	line := m.mark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	m.initial = line == nil
	return line
}

// bookmark carries the position of the watch, with all members, for a caller that wants to resume
// there.
func (m *merger) bookmark() []byte {
	if m.initial || m.listing > 0 {
		return nil
	}
	return m.mark(nil)
}

// mark is a bookmark. It names members that have not replied yet, because headers can no longer do
// so.
func (m *merger) mark(annotations map[string]string) []byte {
	if !m.bookmarks || m.kind == "" || m.kind == "Table" {
		return nil
	}
	m.marked = time.Now()
	metadata := map[string]any{"resourceVersion": m.trail.version(), "creationTimestamp": nil}
	if unread := m.unread(); len(unread) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[viewv1alpha1.AnnotationSilent] = namesOf(unread)
	}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return encodeEvent("BOOKMARK", map[string]any{"kind": m.kind, "apiVersion": m.apiVersion, "metadata": metadata})
}

// unread are the members that were not read yet.
func (m *merger) unread() []string {
	var unread []string
	for _, member := range m.missing.unread() {
		if m.members[member] != nil && m.trail.at(member) == "" {
			unread = append(unread, member)
		}
	}
	slices.Sort(unread)
	return unread
}
