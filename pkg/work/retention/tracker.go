// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Recheck is the interval at which retained objects are checked: whether they are released or
// wanted.
const Recheck = 30 * time.Second

// together is how long newly retained objects share one id, because the works of a member are
// reconciled one after another.
const together = time.Minute

// Kinds of works with retained objects, as reports name them.
const (
	Works           = "Works"
	ManifestWorks   = "ManifestWorks"
	ServiceAccounts = "ManagedServiceAccounts"
)

// Summary is the total of retained objects on the member. The zero value means none.
type Summary struct {
	// Works is the number of works with retained objects, including ManifestWorks and
	// ManagedServiceAccounts. Objects is the number of these objects.
	Works, Objects int
	// Kinds names the kinds of these works, such as "ManifestWorks and Works".
	Kinds string
	// Example is the first of these works by name.
	Example string
	// IDs are the ids of the retained objects, sorted and comma-separated, as AnnotationRelease
	// accepts them. Empty if nothing is retained.
	IDs string
	// HubRestored is set if objects are retained because the hub was restored, not only because
	// Works were replaced.
	HubRestored bool
}

// Tracker counts retained objects and assigns ids to them. It is safe for concurrent use.
type Tracker struct {
	onChange func(Summary)
	newID    func() string

	// mu guards the following fields. It is held while onChange is called, so that the latest call
	// comes last.
	mu    sync.Mutex
	works map[key]tracked
	// id is the id for objects that are retained since begun.
	id    string
	begun time.Time
	// released are the ids of the last Release.
	released []string
}

type key struct{ kind, name string }

type tracked struct {
	Mark
	objects int
}

// NewTracker returns an empty Tracker. onChange, if not nil, is called after every change and must not block.
func NewTracker(onChange func(Summary)) *Tracker { return NewTrackerWithIDs(onChange, randomID) }

// NewTrackerWithIDs is NewTracker with a generator of ids. Each id must be unique.
func NewTrackerWithIDs(onChange func(Summary), newID func() string) *Tracker {
	return &Tracker{onChange: onChange, newID: newID, works: map[key]tracked{}}
}

// randomID does not use a clock, because clocks can repeat a time.
func randomID() string { return string(uuid.NewUUID())[:8] }

// New returns the mark of objects that are retained from now on. Its id is new, so that no earlier
// release matches it.
func (b *Tracker) New(now time.Time, released []string) Mark {
	return Mark{Since: now.UTC().Format(time.RFC3339), ID: b.idAt(now, released)}
}

// Continue returns the mark of objects that remain retained. A mark of an earlier version of the
// agent gets an id.
func (b *Tracker) Continue(m Mark, now time.Time, released []string) Mark {
	if m.Is() && m.ID == "" {
		m.ID = b.idAt(now, released)
	}
	return m
}

// idAt returns the id for objects that are retained from now on. It differs from released ids, and
// from ids that were reported some time ago without these objects.
func (b *Tracker) idAt(now time.Time, released []string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.id == "" || now.Sub(b.begun).Abs() > together || slices.Contains(released, b.id) {
		b.id, b.begun = b.newID(), now
	}
	return b.id
}

// Release stores the ids that the administrator releases.
func (b *Tracker) Release(ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = ids
}

// Released returns the ids of the last Release.
func (b *Tracker) Released() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.released
}

// Set records how many objects of a work are retained; zero deletes its entry.
func (b *Tracker) Set(kind, name string, of Mark, objects int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := key{kind, name}, tracked{of, objects}
	if objects == 0 {
		now = tracked{}
	}
	if b.works[k] == now {
		return
	}
	if b.works[k] = now; objects == 0 {
		delete(b.works, k)
	}
	if b.onChange != nil {
		b.onChange(b.sum())
	}
}

// Summary returns the total.
func (b *Tracker) Summary() Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum()
}

// sum returns the total. The caller has the lock.
func (b *Tracker) sum() Summary {
	sum, ids, kinds := Summary{Works: len(b.works)}, sets.Set[string]{}, sets.Set[string]{}
	for k, of := range b.works {
		sum.Objects += of.objects
		sum.HubRestored = sum.HubRestored || !of.Another
		ids.Insert(of.ID)
		kinds.Insert(k.kind)
		if sum.Example == "" || k.name < sum.Example {
			sum.Example = k.name
		}
	}
	sum.IDs, sum.Kinds = strings.Join(sets.List(ids), ","), strings.Join(sets.List(kinds), " and ")
	return sum
}

// Names returns the works of a kind with retained objects.
func (b *Tracker) Names(kind string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for k := range b.works {
		if k.kind == kind {
			names = append(names, k.name)
		}
	}
	return names
}
