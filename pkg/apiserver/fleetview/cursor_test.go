// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// number parses a cursor as a client does.
func number(t *testing.T, cursor string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cursor, 10, 63)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lifeOfAWatch is the events of a watch, and with each event where it can be resumed.
type lifeOfAWatch struct {
	cursors []uint64
	// last is, for each event, the version of the last event of each member.
	last []versions
	// seen are the versions of each member's events, in order.
	seen map[string][]uint64
}

// live generates events of members, and bookmarks in between that skip no event.
func live(t *testing.T, of *trail, random *rand.Rand, events int) *lifeOfAWatch {
	life := &lifeOfAWatch{seen: map[string][]uint64{}}
	now, version := versions{}, uint64(1)
	for range events {
		member := of.members[random.IntN(len(of.members))]
		version++
		if random.IntN(3) == 0 {
			of.reach(member, fmt.Sprint(version))
			version++
		}
		cursor := number(t, of.step(member, fmt.Sprint(version)))
		now[member] = version
		life.seen[member] = append(life.seen[member], version)
		life.cursors = append(life.cursors, cursor)
		life.last = append(life.last, versions{})
		for member, at := range now {
			life.last[len(life.last)-1][member] = at
		}
	}
	return life
}

// A watch can be resumed from each of its last events without a lost or duplicate event: each
// member resumes at or after its last event until then, and before the next one.
func TestCursors_ResumeFromEachOfTheLastEvents(t *testing.T) {
	members := []string{"a", "b", "c"}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := newCursors(trailsLimit)
		other := c.begin(members, versions{"a": 1})
		of := c.begin(members, versions{"a": 1, "b": 1, "c": 1})
		life := live(t, of, random, 1+random.IntN(2*stepsOfTrail))
		live(t, other, random, 100)
		if !slices.IsSorted(life.cursors) {
			t.Fatal("cursors do not grow")
		}
		known := 0
		for i, cursor := range life.cursors {
			got, err := c.at(cursor, members)
			if err != nil && apierrors.IsResourceExpired(err) && known == 0 && len(life.cursors)-i > stepsOfTrail/2 {
				continue // So old that it was dropped.
			}
			if err != nil {
				t.Fatalf("seed %d, event %d of %d: %v", seed, i, len(life.cursors), err)
			}
			known++
			for _, member := range members {
				last := max(life.last[i][member], 1)
				next := slices.IndexFunc(life.seen[member], func(version uint64) bool { return version > last })
				if got[member] < last || next >= 0 && got[member] >= life.seen[member][next] {
					t.Fatalf("seed %d, event %d of %d: member %s resumes from %d, where its last event was %d", seed, i, len(life.cursors), member, got[member], last)
				}
			}
		}
		if known > stepsOfTrail {
			t.Errorf("%d events are remembered", known)
		}
	}
}

// A member's list is sent object by object, and deletions since then follow. A client that received
// nothing else can resume only after the last of them.
func TestCursors_DoNotResumeInTheMiddleOfAList(t *testing.T) {
	members := []string{"a", "b"}
	c := newCursors(trailsLimit)
	of := c.begin(members, versions{"a": 3})
	goesOn := func(cursor string) versions {
		t.Helper()
		v, err := c.at(number(t, cursor), members)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	refused := func(cursor string) {
		t.Helper()
		if v, err := c.at(number(t, cursor), members); !apierrors.IsResourceExpired(err) {
			t.Errorf("it resumes from %v: %v", v, err)
		}
	}
	before := of.step("a", "4")
	first := of.step("b", "")
	between := of.step("a", "5")
	refused(between)
	if got := of.at("b"); got != "" {
		t.Errorf("a member with a partly sent list is watched from %s", got)
	}
	if _, err := decodeVersions(of.version(), members); !apierrors.IsResourceExpired(err) {
		t.Errorf("a bookmark in the middle of a list: %v", err)
	}
	last := of.step("b", "")
	refused(last)
	of.reach("b", "9")
	refused(first)
	refused(between)
	if diff := cmp.Diff(versions{"a": 5, "b": 9}, goesOn(last)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(versions{"a": 4}, goesOn(before)); diff != "" {
		t.Errorf("before the list of b, b has to be listed: %s", diff)
	}
	opaque := of.step("a", "of no number")
	refused(opaque)
}

func TestCursors_RejectCursorsOfOthers(t *testing.T) {
	members := []string{"a", "b"}
	here, there := newCursors(trailsLimit), newCursors(trailsLimit)
	there.replica = here.replica ^ 1
	of := here.begin(members, versions{"a": 3, "b": 3})
	cursor := number(t, of.step("a", "4"))
	for name, err := range map[string]error{
		"at another replica":    second(there.at(cursor, members)),
		"of other members":      second(here.at(cursor, members[:1])),
		"a member's version":    second(here.at(4, members)),
		"the previous one":      second(here.at(cursor-1, members)),
		"one that is not given": second(here.at(cursor+1<<replicaBits, members)),
	} {
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	of.setMembers(members[:1])
	for _, now := range [][]string{members, members[:1]} {
		if _, err := here.at(cursor, now); !apierrors.IsResourceExpired(err) {
			t.Errorf("after the view was of other members, for %v: %v", now, err)
		}
	}
	next := number(t, of.step("a", "5"))
	if got, err := here.at(next, members[:1]); err != nil || !cmp.Equal(got, versions{"a": 5}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func second(_ versions, err error) error { return err }

// The watches whose last event is oldest are dropped first, including ended ones.
func TestCursors_LimitTheirMemory(t *testing.T) {
	members := []string{"a", "b"}
	const room = 3 * (2*memberCost + stepCost)
	c := newCursors(room)
	var given []uint64
	for range 5 {
		given = append(given, number(t, c.begin(members, versions{"a": 1, "b": 1}).step("a", "2")))
	}
	var known []bool
	for _, cursor := range given {
		_, err := c.at(cursor, members)
		known = append(known, err == nil)
	}
	if diff := cmp.Diff([]bool{false, false, true, true, true}, known); diff != "" || c.used > room || c.trails.Len() != 3 {
		t.Errorf("%d bytes, %d watches: %s", c.used, c.trails.Len(), diff)
	}
	large := c.begin(members, versions{})
	for range 10 {
		large.step("b", "7")
	}
	if c.used > room {
		t.Errorf("one watch takes %d bytes of %d", c.used, room)
	}
}

// FuzzVersions checks that any text from a client is either a version of these members, or rejected
// as invalid or expired.
func FuzzVersions(f *testing.F) {
	members := []string{"a", "b", "c"}
	of := newCursors(trailsLimit).begin(members, versions{"a": 1, "b": 200})
	f.Add(of.version())
	f.Add(of.step("c", ""))
	f.Add(of.version())
	f.Add("0x10")
	f.Add("18446744073709551616")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := of.of.versionsOf(text, members)
		if err != nil {
			if !apierrors.IsBadRequest(err) && !apierrors.IsResourceExpired(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeVersions(v.encode(members), members)
		if err != nil || !cmp.Equal(v, again) {
			t.Fatalf("%v, %v came of %v", again, err, v)
		}
	})
}

// A version of 10,000 members does not fit a request.
func TestCursors_KeepVersionsOfHugeFleet(t *testing.T) {
	members, at := make([]string, 10_000), versions{}
	for i := range members {
		members[i] = fmt.Sprintf("member-%05d", i)
		at[members[i]] = uint64(1<<40 + i)
	}
	const room = 3
	c := newCursors(room * int64(len(at.encode(members))))
	given := c.publish(at, members)
	got, err := c.versionsOf(given, members)
	if err != nil || len(given) > 20 || !maps.Equal(got, at) {
		t.Fatalf("%d versions of %.30q, %v", len(got), given, err)
	}
	if _, err := c.versionsOf(given, members[1:]); !apierrors.IsResourceExpired(err) {
		t.Errorf("for other members: %v", err)
	}
	if _, err := newCursors(trailsLimit).versionsOf(given, members); !apierrors.IsResourceExpired(err) {
		t.Errorf("at another replica: %v", err)
	}

	watches := newCursors(trailsLimit)
	w := watches.begin(members, maps.Clone(at))
	w.step(members[0], "7")
	bookmark := w.version()
	w.step(members[1], "8")
	want := maps.Clone(at)
	want[members[0]] = 7
	if got, err := watches.versionsOf(bookmark, members); err != nil || len(bookmark) > 20 || !maps.Equal(got, want) {
		t.Errorf("%d versions of bookmark %.30q, %v", len(got), bookmark, err)
	}
	for range room {
		c.publish(at, members)
	}
	if _, err := c.versionsOf(given, members); !apierrors.IsResourceExpired(err) || len(c.kept) != room {
		t.Errorf("%d versions are kept, and the oldest returns %v", len(c.kept), err)
	}
}
