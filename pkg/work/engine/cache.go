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

// caches caches what the agent knows of each work between reconciles. Losing it only makes the
// next reconcile slower.
type caches struct {
	seed maphash.Seed // of the sums of manifests

	mu    sync.Mutex // guards works
	works map[string]*cache
}

// cache is the cache of one work. Each part has its own lock.
type cache struct {
	objects           objects
	plans             plans
	podCauses         podCauses
	missingNamespaces missingNamespaces
}

func newCaches() *caches { return &caches{seed: maphash.MakeSeed(), works: map[string]*cache{}} }

// of returns the cache of a work and creates it if needed.
func (m *caches) of(work string) *cache {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.works[work] == nil {
		m.works[work] = &cache{objects: objects{seed: m.seed, known: map[memberwatch.Object]cachedObject{}}}
	}
	return m.works[work]
}

func (m *caches) forget(work string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, work)
}

// Expects reports whether a change of an object is our own write.
func (e *Engine) Expects(change memberwatch.Event) bool {
	e.caches.mu.Lock()
	work := e.caches.works[change.Work]
	e.caches.mu.Unlock()
	return work != nil && change.Version != "" && !change.NewKind && work.objects.left(change.Object, change.Version)
}

// objects caches the objects of one work as the last reconcile saw them.
type objects struct {
	seed maphash.Seed // of shapes

	mu    sync.Mutex // guards what follows: a wave runs in parallel
	known map[memberwatch.Object]cachedObject
	// under is the [Work.Under] of all cached results.
	under string
	// fullLook is the time when all objects were last read from the member.
	fullLook time.Time
}

// cachedObject is an object as the last reconcile saw it.
type cachedObject struct {
	hash            string
	basis           basis
	resourceVersion string
	at              time.Time
	result          ManifestResult
	backoff         backoff
	against         *Contest // of the last correction
	shape           uint64   // of an object that is replaced; zero if unknown
	futile          bool     // a write of this manifest changed nothing but the object's version
}

// begin prepares a reconcile. It deletes objects that are no longer among the items. It invalidates
// all results if [Work.Under] changed or the last full read is older than resync.
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

// unchanged returns the cached result of an item whose object is unchanged according to the watch.
func (o *objects) unchanged(it Item, observed memberwatch.Observation, now time.Time) (ManifestResult, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	if !ok || s.hash != it.hash || s.result.isRetriable() || s.basis != it.Mode.basis() || !observed.IsUnchangedSince(s.resourceVersion, s.at, now) {
		return ManifestResult{}, false
	}
	return s.result, true
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
	return s.backoff.wait(now)
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
	endsIn := s.backoff.endsIn(now)
	if endsIn <= 0 {
		return nil, 0
	}
	return s.against, endsIn
}

// store caches an object. undone is set if this reconcile wrote the object; if the manifest is the
// same as before, the write was a correction.
func (o *objects) store(it Item, resourceVersion string, out ManifestResult, undone *Contest, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.known[it.target()]
	after := cachedObject{hash: it.hash, basis: it.Mode.basis(), resourceVersion: resourceVersion, at: now, result: out, futile: out.futile}
	if known && before.hash == it.hash {
		after.backoff, after.against, after.futile = before.backoff, before.against, out.futile || before.futile && undone == nil
		if undone != nil {
			after.backoff, after.against = before.backoff.corrected(now), undone
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

// isFutile reports whether another write of this manifest may change nothing, or lose the same fields again.
func (o *objects) isFutile(it Item) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.known[it.target()]
	refused := s.result.Refused
	return ok && s.hash == it.hash && (s.futile || refused != nil && refused.Reason == FieldsNotApplied)
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
