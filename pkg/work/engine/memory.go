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

// memories caches what the agent knows of each work between reconciles. Losing it only makes the
// next reconcile slower.
type memories struct {
	seed maphash.Seed // of the sums of manifests

	mu    sync.Mutex // guards works
	works map[string]*memory
}

// memory is the cache of one work. Each part has its own lock.
type memory struct {
	objects objects
	plans   plans
	asked   asked
	lacking lacking
}

func newMemories() *memories { return &memories{seed: maphash.MakeSeed(), works: map[string]*memory{}} }

// newObjects returns an empty cache.
func newObjects(seed maphash.Seed) objects {
	return objects{seed: seed, known: map[memberwatch.Object]settled{}}
}

// of returns the cache of a work and creates it if needed.
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

// Expects reports whether a change of an object is our own write.
func (e *Engine) Expects(change memberwatch.Event) bool {
	e.memories.mu.Lock()
	work := e.memories.works[change.Work]
	e.memories.mu.Unlock()
	return work != nil && change.Version != "" && !change.NewKind && work.objects.left(change.Object, change.Version)
}

// objects caches the objects of one work as the last reconcile saw them.
type objects struct {
	seed maphash.Seed // of shapes

	mu    sync.Mutex // guards what follows: a wave runs in parallel
	known map[memberwatch.Object]settled
	// under is the [Work.Under] of all cached outcomes.
	under string
	// fullLook is the time when all objects were last read from the member.
	fullLook time.Time
}

// settled is an object as the last reconcile saw it.
type settled struct {
	hash            string
	basis           basis
	resourceVersion string
	at              time.Time
	outcome         Outcome
	patience        patience
	against         *Contest // of the last correction
	shape           uint64   // of an object that is replaced; zero if unknown
}

// begin prepares a reconcile. It deletes objects that are no longer among the items. It invalidates
// all outcomes if [Work.Under] changed or the last full read is older than resync.
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

// unchanged returns the cached outcome of an item whose object is unchanged according to the watch.
func (o *objects) unchanged(it Item, saw memberwatch.Sighting, now time.Time) (Outcome, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash || s.outcome.isOpen() || s.basis != it.Way.basis() || !saw.IsAsLeft(s.resourceVersion, s.at, now) {
		return Outcome{}, false
	}
	return s.outcome, true
}

// wait returns how long a correction of the item's object has to wait. A changed manifest is no
// correction and never waits.
func (o *objects) wait(it Item, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash {
		return 0
	}
	return s.patience.wait(now)
}

// contest returns the contest over the item's object and how long it lasts if nothing else happens;
// nil if the object is not contested.
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

// settle caches an object. undone is set if this reconcile wrote the object; if the manifest is the
// same as before, the write was a correction.
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

// left reports whether the last reconcile left the object at this resourceVersion.
func (o *objects) left(object memberwatch.Object, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[object].resourceVersion == version
}

// setShape caches the shape of an object that was replaced.
func (o *objects) setShape(it Item, object *unstructured.Unstructured) {
	shape := shapeOf(o.seed, object)
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.known[it.target()]
	s.shape = shape
	o.known[it.target()] = s
}

// hasShape reports whether an object has the same shape as when this manifest replaced it.
func (o *objects) hasShape(it Item, object *unstructured.Unstructured) bool {
	o.mu.Lock()
	s, ok := o.known[it.target()]
	o.mu.Unlock()
	return ok && s.hash == it.hash && s.shape != 0 && s.shape == shapeOf(o.seed, object)
}
