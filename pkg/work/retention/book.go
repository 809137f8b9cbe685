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

// Recheck is how often what is held is looked at again: whether it is let go, or wanted.
const Recheck = 30 * time.Second

// together is for how long what is held gets one id: the works of a member are looked at one
// after another.
const together = time.Minute

// Kinds of what asked for things that are held, as people are told of them.
const (
	Works           = "Works"
	ManifestWorks   = "ManifestWorks"
	ServiceAccounts = "ManagedServiceAccounts"
)

// Sum is how much is held on the member. The zero value is nothing.
type Sum struct {
	// Works are those of which something is held, ManifestWorks and ManagedServiceAccounts
	// among them, Objects how much that is.
	Works, Objects int
	// Kinds says which kinds these are, such as "ManifestWorks and Works".
	Kinds string
	// Example is the first of these by name.
	Example string
	// IDs are the ids under which the objects are retained, sorted and separated by commas, as
	// AnnotationRelease takes them. Empty if nothing is retained.
	IDs string
	// HubRestored is set if objects are retained since the hub was restored, and not only since Works
	// came in the place of others.
	HubRestored bool
}

// Book counts what is held, and gives it ids. It is safe for concurrent use.
type Book struct {
	told  func(Sum)
	newID func() string

	// mu guards what follows, and is held while told is called, so that it hears the latest last.
	mu    sync.Mutex
	works map[key]held
	// id is what is held got since begun.
	id    string
	begun time.Time
	// released are the ids that Release got last.
	released []string
}

type key struct{ kind, name string }

type held struct {
	Mark
	objects int
}

// NewBook makes one. told, if set, hears of every change, and must not block.
func NewBook(told func(Sum)) *Book { return NewBookWithIDs(told, randomID) }

// NewBookWithIDs is NewBook with ids that the caller makes: each has to be one that nobody had.
func NewBookWithIDs(told func(Sum), newID func() string) *Book {
	return &Book{told: told, newID: newID, works: map[key]held{}}
}

// randomID is random: a clock can say one time twice.
func randomID() string { return string(uuid.NewUUID())[:8] }

// New is the mark of what is held from now on. Its id was never told before, so that no word
// of before lets it go.
func (b *Book) New(now time.Time, released []string) Mark {
	return Mark{Since: now.UTC().Format(time.RFC3339), ID: b.idAt(now, released)}
}

// GoesOn is a mark of what is not let go: one that an agent of before made gets an id.
func (b *Book) GoesOn(m Mark, now time.Time, released []string) Mark {
	if m.Is() && m.ID == "" {
		m.ID = b.idAt(now, released)
	}
	return m
}

// idAt is the id of what is held from now on: another one than what was let go has, and than
// what was held a while ago, since that was told without this.
func (b *Book) idAt(now time.Time, released []string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.id == "" || now.Sub(b.begun).Abs() > together || slices.Contains(released, b.id) {
		b.id, b.begun = b.newID(), now
	}
	return b.id
}

// Release stores the ids that the administrator releases.
func (b *Book) Release(ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = ids
}

// Released returns the ids that Release got last.
func (b *Book) Released() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.released
}

// Set enters how many objects of one work of a kind are held; none ends its entry.
func (b *Book) Set(kind, name string, of Mark, objects int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, now := key{kind, name}, held{of, objects}
	if objects == 0 {
		now = held{}
	}
	if b.works[k] == now {
		return
	}
	if b.works[k] = now; objects == 0 {
		delete(b.works, k)
	}
	if b.told != nil {
		b.told(b.sum())
	}
}

// Sum is how much is held.
func (b *Book) Sum() Sum {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum()
}

// sum adds up what is held. The caller has the lock.
func (b *Book) sum() Sum {
	sum, ids, kinds := Sum{Works: len(b.works)}, sets.Set[string]{}, sets.Set[string]{}
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

// Names are the works of a kind of which something is held.
func (b *Book) Names(kind string) []string {
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
