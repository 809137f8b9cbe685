// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// memories are what the agent remembers of each work between two looks at it. All
// of it can be lost: the next look is only slower.
type memories struct {
	seed maphash.Seed // of the sums of manifests

	mu    sync.Mutex // guards works
	works map[string]*memory
}

// memory is that of one work, by subject: each has its own lock.
type memory struct {
	objects objects
	plans   plans
	asked   asked
	lacking lacking
}

func newMemories() *memories { return &memories{seed: maphash.MakeSeed(), works: map[string]*memory{}} }

// newObjects remembers none yet.
func newObjects(seed maphash.Seed) objects {
	return objects{seed: seed, known: map[memberwatch.Object]settled{}}
}

// of is the memory of a work, made if there is none.
func (m *memories) of(work string) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.works[work] == nil {
		m.works[work] = &memory{objects: newObjects(m.seed)}
	}
	return m.works[work]
}

func (m *memories) forget(work string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, work)
}

// Expects reports whether a change of an object tells nothing but what we did ourselves.
func (e *Engine) Expects(change memberwatch.Event) bool {
	e.memories.mu.Lock()
	work := e.memories.works[change.Work]
	e.memories.mu.Unlock()
	return work != nil && change.Version != "" && !change.NewKind && work.objects.left(change.Object, change.Version)
}

// objects are the objects of one work as they were left.
type objects struct {
	seed maphash.Seed // of shapes

	mu    sync.Mutex // guards what follows: a wave runs in parallel
	known map[memberwatch.Object]settled
	// under is what all outcomes were made under: strategy and owner.
	under string
	// fullLook is when all objects were last read from the member.
	fullLook time.Time
}

// settled is an object as it was left.
type settled struct {
	hash            string
	basis           basis
	resourceVersion string
	at              time.Time
	outcome         Outcome
	patience        patience
	against         *Contest // of the last repair
	shape           uint64   // of an object that is replaced; zero: not known
}

// begin prepares for a look at the items: it forgets objects that are no longer
// among them, and all outcomes if they were made on another basis or the last
// full look is older than resync.
func (o *objects) begin(items []Item, under string, now time.Time, resync time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wanted := map[memberwatch.Object]bool{}
	for _, it := range items {
		wanted[it.target()] = true
	}
	full := under != o.under || now.Sub(o.fullLook) >= resync
	for key, s := range o.known {
		if !wanted[key] {
			delete(o.known, key)
			continue
		}
		if full {
			s.resourceVersion = ""
			if under != o.under {
				s.shape = 0
			}
			o.known[key] = s
		}
	}
	if full {
		o.under, o.fullLook = under, now
	}
}

// unchanged is the outcome of an item whose object is, by the watch, as it was left.
func (o *objects) unchanged(it Item, saw memberwatch.Sighting, now time.Time) (Outcome, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash || s.outcome.isOpen() || s.basis != it.Way.basis() || !saw.IsAsLeft(s.resourceVersion, s.at, now) {
		return Outcome{}, false
	}
	return s.outcome, true
}

// wait is how long a repair of the item's object has to wait. A changed
// manifest is not a repair and never waits.
func (o *objects) wait(it Item, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash {
		return 0
	}
	return s.patience.wait(now)
}

// contest says against whom the item's object is being repaired and for how long
// it counts as contested if nothing else happens; nil if it does not.
func (o *objects) contest(it Item, now time.Time) (*Contest, time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash {
		return nil, 0
	}
	quietIn := s.patience.quietIn(now)
	if quietIn <= 0 {
		return nil, 0
	}
	return s.against, quietIn
}

// settle remembers how an object was left. With undone this look has changed the
// object or made it: with the same manifest as before, that is a repair.
func (o *objects) settle(it Item, resourceVersion string, out Outcome, undone *Contest, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.known[it.target()]
	after := settled{hash: it.hash, basis: it.Way.basis(), resourceVersion: resourceVersion, at: now, outcome: out}
	if known && before.hash == it.hash {
		after.patience, after.against = before.patience, before.against
		if undone != nil {
			after.patience, after.against = before.patience.repaired(now), undone
		}
	}
	o.known[it.target()] = after
}

// left reports whether an object has a resourceVersion with which it was left.
func (o *objects) left(object memberwatch.Object, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[object].resourceVersion == version
}

// setShape remembers how an object looked when it was replaced.
func (o *objects) setShape(it Item, object *unstructured.Unstructured) {
	shape := shapeOf(o.seed, object)
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.known[it.target()]
	s.shape = shape
	o.known[it.target()] = s
}

// hasShape reports whether an object looks as it did when it was replaced by the same
// manifest.
func (o *objects) hasShape(it Item, object *unstructured.Unstructured) bool {
	o.mu.Lock()
	s, ok := o.known[it.target()]
	o.mu.Unlock()
	return ok && s.hash == it.hash && s.shape != 0 && s.shape == shapeOf(o.seed, object)
}
