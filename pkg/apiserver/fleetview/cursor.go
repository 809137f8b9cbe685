// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// replicaBits are the lower, random bits of a cursor. They identify the issuer: a cursor of
	// another replica, or of this one before a restart, does not match.
	replicaBits = 21
	// stepsOfTrail is how many of its last events a watch can be resumed from. When a connection is
	// lost, the buffers of both sides hold events that the client has not read.
	stepsOfTrail = 1024
	// stepCost is the memory of one event, memberCost that of a member.
	stepCost, memberCost = 48, 64
	// trailsLimit limits the bytes of all trails of a gateway, and those of all kept versions.
	trailsLimit = 32 << 20
)

// cursors issue the resourceVersions of watch events, and remember the position of each watch. A
// cursor is a decimal number, so that clients that compare versions see them grow: within a watch,
// in the watch that resumes it, and above the versions of members.
type cursors struct {
	replica uint64
	limit   int64

	mu   sync.Mutex // guards the following fields, and all trails
	last uint64
	// used is the cost of all trails. Trails with steps are in the order of their last step; the
	// first is dropped first.
	used   int64
	trails *list.List
	// kept are encoded versions that are too long for a client, by cursor; order has their cursors,
	// the oldest first, keptBytes is their size.
	kept      map[uint64]string
	order     []uint64
	keptBytes int64
}

func newCursors(limit int64) *cursors {
	return &cursors{replica: rand.Uint64N(1 << replicaBits), limit: limit, trails: list.New(), kept: map[uint64]string{}}
}

// next is called with mu held. The clock makes cursors grow from one replica to the next as well.
func (c *cursors) next() uint64 {
	c.last = max(c.last+1, uint64(time.Now().UnixMilli()))
	return c.last<<replicaBits | c.replica
}

// publish returns the resourceVersion of a list. One that is too long is kept here, and a cursor
// stands for it: other replicas return 410 for it.
func (c *cursors) publish(v versions, members []string) string {
	text := v.encode(members)
	if len(text) <= maxVersion {
		return text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.next()
	c.kept[number], c.order = text, append(c.order, number)
	c.keptBytes += int64(len(text))
	for c.keptBytes > c.limit && len(c.order) > 1 {
		c.keptBytes -= int64(len(c.kept[c.order[0]]))
		delete(c.kept, c.order[0])
		c.order = c.order[1:]
	}
	return strconv.FormatUint(number, 10)
}

// trail is the current position of one watch, and its position at each of its last events.
type trail struct {
	of      *cursors
	members []string
	now     versions
	steps   []step
	// place is the trail's element in cursors.trails; nil while it has no step.
	place *list.Element
	cost  int64
}

// step is one event: it moved the member on from a version.
type step struct {
	cursor uint64
	member string
	before uint64
}

// begin returns the trail of a watch that begins at these versions.
func (c *cursors) begin(members []string, from versions) *trail {
	return &trail{of: c, members: members, now: from}
}

// step records that an event of a member is sent, which moves the member to that version, and
// returns the event's cursor. Without a version the member is in the middle of something, such as
// its list.
func (t *trail) step(member, version string) (cursor string) {
	c := t.of
	c.mu.Lock()
	defer c.mu.Unlock()
	before := t.now[member]
	t.now[member] = midList
	t.now.set(member, version)
	return t.add(member, before)
}

// add is called with mu held.
func (t *trail) add(member string, before uint64) (cursor string) {
	number := t.of.next()
	if len(t.steps) == stepsOfTrail {
		t.steps = append(t.steps[:0], t.steps[stepsOfTrail/2:]...)
	}
	t.steps = append(t.steps, step{cursor: number, member: member, before: before})
	t.keep()
	return strconv.FormatUint(number, 10)
}

// reach records that a member is at a version without a new event.
func (t *trail) reach(member, version string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.now.set(member, version)
}

// setMembers replaces the trail's members. Earlier events cannot be resumed from: the client would
// not get the DELETED events for members that left.
func (t *trail) setMembers(members []string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.members = members
	t.forget()
	maps.DeleteFunc(t.now, func(member string, _ uint64) bool {
		_, stays := slices.BinarySearch(members, member)
		return !stays
	})
}

// version is the resourceVersion of the whole watch, for any replica. One that is too long becomes
// a step that moves no member.
func (t *trail) version() string {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	text := t.now.encode(t.members)
	if len(text) <= maxVersion {
		return text
	}
	return t.add("", 0)
}

// at is the version from which a member can be watched; empty if it has to be listed first.
func (t *trail) at(member string) string {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.now.of(member)
}

// keep moves a trail to the end of the list, and drops the first ones if there is no room.
func (t *trail) keep() {
	c := t.of
	cost := int64(len(t.members)*memberCost + len(t.steps)*stepCost)
	c.used += cost - t.cost
	t.cost = cost
	if t.place == nil {
		t.place = c.trails.PushBack(t)
	}
	c.trails.MoveToBack(t.place)
	for c.used > c.limit {
		c.trails.Front().Value.(*trail).forget()
	}
}

// forget drops all events of a watch.
func (t *trail) forget() {
	if t.place == nil {
		return
	}
	t.of.used -= t.cost
	t.of.trails.Remove(t.place)
	t.place, t.cost, t.steps = nil, 0, nil
}

// versionsOf reads the resourceVersion from which a client resumes: that of an event, of a list or
// of a bookmark.
func (c *cursors) versionsOf(text string, members []string) (versions, error) {
	if cursor, err := strconv.ParseUint(text, 10, 64); err == nil {
		return c.at(cursor, members)
	}
	return decodeVersions(text, members)
}

// at is the position from which a watch of these members resumes whose client received the event
// with this cursor last.
func (c *cursors) at(cursor uint64, members []string) (versions, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text, ok := c.kept[cursor]; ok {
		return decodeKept(text, members)
	}
	for place := c.trails.Back(); place != nil; place = place.Prev() {
		t := place.Value.(*trail)
		n, ok := slices.BinarySearchFunc(t.steps, cursor, func(s step, cursor uint64) int { return cmp.Compare(s.cursor, cursor) })
		if !ok {
			continue
		}
		if !slices.Equal(t.members, members) {
			return nil, errOtherMembers()
		}
		return t.after(n)
	}
	return nil, apierrors.NewResourceExpired(fmt.Sprintf("%d is not the version of an event that this gateway remembers: list again", cursor))
}

// after is the position of the watch after a step: the current one without the later changes.
func (t *trail) after(n int) (versions, error) {
	v := maps.Clone(t.now)
	for i := len(t.steps) - 1; i > n; i-- {
		if s := t.steps[i]; s.before > 0 {
			v[s.member] = s.before
		} else {
			delete(v, s.member)
		}
	}
	return v, v.complete()
}
