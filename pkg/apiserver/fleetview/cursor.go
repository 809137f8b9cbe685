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
	// replicaBits are the lower bits of a cursor. They say whose it is, by chance: a cursor
	// of another replica, or of this one before it was started anew, is known as that.
	replicaBits = 21
	// stepsOfTrail is from how many of its last events a watch can be gone on with. What a
	// client has not read yet when its connection is lost is in the buffers of both sides.
	stepsOfTrail = 1024
	// stepCost is what one event costs to remember, memberCost what a member does.
	stepCost, memberCost = 48, 64
	// trailsLimit is how many bytes all trails of a gateway may have.
	trailsLimit = 32 << 20
)

// cursors give the events of watches their versions, and remember where the watches were.
// A cursor is a decimal number, so that clients which compare versions see them grow: in one
// watch, in the one that goes on with it, and beyond the versions of members.
type cursors struct {
	replica uint64
	limit   int64

	mu   sync.Mutex // guards what follows, and all trails
	last uint64
	// used is what trails cost. Those that have a step are in order of their last: the first
	// is forgotten first.
	used   int64
	trails *list.List
}

func newCursors(limit int64) *cursors {
	return &cursors{replica: rand.Uint64N(1 << replicaBits), limit: limit, trails: list.New()}
}

// trail is where one watch is, and was with each of its last events.
type trail struct {
	of      *cursors
	members []string
	now     versions
	steps   []step
	// place is where the trail is among all; nil while it has no step.
	place *list.Element
	cost  int64
}

// step is one event: with it, the member went on from a version.
type step struct {
	cursor uint64
	member string
	before uint64
}

// begin is the trail of a watch that begins there.
func (c *cursors) begin(members []string, from versions) *trail {
	return &trail{of: c, members: members, now: from}
}

// step notes that an event of a member is told, with which the member is at that version, and
// returns the event's cursor. Without a version the member is in the midst of something, such
// as its list.
func (t *trail) step(member, version string) (cursor string) {
	c := t.of
	c.mu.Lock()
	defer c.mu.Unlock()
	// By the clock, so that cursors grow from one replica to the next as well.
	c.last = max(c.last+1, uint64(time.Now().UnixMilli()))
	number := c.last<<replicaBits | c.replica
	if len(t.steps) == stepsOfTrail {
		t.steps = append(t.steps[:0], t.steps[stepsOfTrail/2:]...)
	}
	t.steps = append(t.steps, step{cursor: number, member: member, before: t.now[member]})
	t.now[member] = midst
	t.now.set(member, version)
	t.keep()
	return strconv.FormatUint(number, 10)
}

// reach notes that a member is at a version, with no event since the last that was told.
func (t *trail) reach(member, version string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.now.set(member, version)
}

// become has the trail be of other members. Nobody can go on from before: of members that left
// they would not be told what those took with them.
func (t *trail) become(members []string) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.members = members
	t.forget()
	maps.DeleteFunc(t.now, func(member string, _ uint64) bool {
		_, stays := slices.BinarySearch(members, member)
		return !stays
	})
}

// version is that of the whole watch, for any replica.
func (t *trail) version() string {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.now.encode(t.members)
}

// at is from where a member can be watched; empty if it has to be listed first.
func (t *trail) at(member string) string {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.now.of(member)
}

// keep puts a trail behind all others, and forgets the first if there is no room.
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

// forget forgets all events of a watch.
func (t *trail) forget() {
	if t.place == nil {
		return
	}
	t.of.used -= t.cost
	t.of.trails.Remove(t.place)
	t.place, t.cost, t.steps = nil, 0, nil
}

// versionsOf reads what a client goes on from: the version of an event, or of a list or a bookmark.
func (c *cursors) versionsOf(text string, members []string) (versions, error) {
	if cursor, err := strconv.ParseUint(text, 10, 64); err == nil {
		return c.at(cursor, members)
	}
	return decodeVersions(text, members)
}

// at is where a watch of these members goes on whose client was told the event with this
// cursor last.
func (c *cursors) at(cursor uint64, members []string) (versions, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

// after is where the watch was after a step: where it is, without what came later.
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
