// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
)

// memory is what the agent remembers of each Work between two looks at it. All
// of it can be lost: the next look is only slower.
type memory struct {
	seed maphash.Seed // of the sums of manifests

	mu    sync.Mutex // guards works
	works map[string]*workMemory
}

func newMemory() *memory { return &memory{seed: maphash.MakeSeed(), works: map[string]*workMemory{}} }

// of is the memory of a work, made if there is none.
func (m *memory) of(work string) *workMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.works[work] == nil {
		m.works[work] = &workMemory{objects: map[memberwatch.Object]settled{}}
	}
	return m.works[work]
}

func (m *memory) forget(work string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, work)
}

// expects reports whether an event tells nothing but what we did ourselves.
func (m *memory) expects(e memberwatch.Event) bool {
	m.mu.Lock()
	work := m.works[e.Work]
	m.mu.Unlock()
	return work != nil && e.Version != "" && !e.NewKind && work.wroteObject(e.Object, e.Version)
}

// workMemory is what is remembered of the objects of one Work.
type workMemory struct {
	mu      sync.Mutex // guards what follows: a wave runs in parallel
	objects map[memberwatch.Object]settled
	// under is what all outcomes were made under: strategy and owner.
	under string
	plan  keptPlan
	// record is the AppliedWork as it was read or written last.
	record   *placementv1beta1.AppliedWork
	recordAt time.Time
	// fullLook is when all objects were last read from the member.
	fullLook time.Time
	// generation is that of the Work at the last look.
	generation int64
	// failed is set when the last look at this generation came to no good end.
	failed bool
	// written is the resourceVersion of the Work that our last write made, and
	// writtenAt when.
	written   string
	writtenAt time.Time
}

// settled is an object as it was left.
type settled struct {
	hash            string
	resourceVersion string
	at              time.Time
	outcome         outcome
	pace            pace
	against         *contest // of the last repair
}

// begin prepares for a look at the items: it forgets objects that are no longer
// among them, and all outcomes if they were made under other terms or the last
// full look is older than resync.
func (m *workMemory) begin(items []item, under string, now time.Time, resync time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := map[memberwatch.Object]bool{}
	for _, it := range items {
		wanted[it.target()] = true
	}
	full := under != m.under || now.Sub(m.fullLook) >= resync
	for key, s := range m.objects {
		if !wanted[key] {
			delete(m.objects, key)
			continue
		}
		if full {
			s.resourceVersion = ""
			m.objects[key] = s
		}
	}
	if full {
		m.under, m.fullLook = under, now
	}
}

// unchanged is the outcome of an item whose object is, by the watch, as it was left.
func (m *workMemory) unchanged(it item, saw memberwatch.Sighting, now time.Time) (outcome, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.objects[it.target()]
	if !ok || s.hash != it.hash || !isAsLeft(saw, s.resourceVersion, s.at, now) {
		return outcome{}, false
	}
	return s.outcome, true
}

// isAsLeft reports whether an object is, by the watch, as it was when it had a
// resourceVersion: the watch shows just that, or has not come as far and will tell of
// all that happened afterwards. The latter is believed only for a while: a member
// that was restored from a backup counts from an earlier number.
func isAsLeft(saw memberwatch.Sighting, resourceVersion string, at, now time.Time) bool {
	if resourceVersion == "" {
		return false
	}
	if saw.Version == resourceVersion {
		return true
	}
	return now.Sub(at) <= cacheGrace && isOlder(saw.Reached, resourceVersion) &&
		(saw.Version == "" || isOlder(saw.Version, resourceVersion))
}

// isOlder compares two resourceVersions of one resource.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// wait is how long a repair of the item's object has to wait. A changed
// manifest is not a repair and never waits.
func (m *workMemory) wait(it item, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.objects[it.target()]
	if !ok || s.hash != it.hash {
		return 0
	}
	return s.pace.wait(now)
}

// contest says against whom the item's object is being repaired and for how long
// it counts as contested if nothing else happens; nil if it does not.
func (m *workMemory) contest(it item, now time.Time) (*contest, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.objects[it.target()]
	if !ok || s.hash != it.hash {
		return nil, 0
	}
	quietIn := s.pace.quietIn(now)
	if quietIn <= 0 {
		return nil, 0
	}
	return s.against, quietIn
}

// settle remembers how an object was left. With undone this look has changed the
// object or made it: with the same manifest as before, that is a repair.
func (m *workMemory) settle(it item, resourceVersion string, out outcome, undone *contest, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.objects[it.target()]
	after := settled{hash: it.hash, resourceVersion: resourceVersion, at: now, outcome: out}
	if known && before.hash == it.hash {
		after.pace, after.against = before.pace, before.against
		if undone != nil {
			after.pace, after.against = before.pace.repaired(now), undone
		}
	}
	m.objects[it.target()] = after
}

// ended remembers how a look at a generation of the Work ended, and reports whether
// it was the first look at that generation.
func (m *workMemory) ended(generation int64, well bool) (first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first = m.generation != generation
	m.generation, m.failed = generation, !well
	return first
}

// isNew reports whether no look at this generation of the Work has ended yet.
func (m *workMemory) isNew(generation int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation != generation
}

// fails reports whether the last look at this generation of the Work came to no
// good end.
func (m *workMemory) fails(generation int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed && m.generation == generation
}

// planned is the plan for the manifests, made anew only if it may be another than the
// last time.
func (m *workMemory) planned(sum uint64, manifests []placementv1beta1.Manifest, kinds kindFinder, house ...string) ([]item, error) {
	m.mu.Lock()
	items, ok := m.plan.of(sum, manifests)
	m.mu.Unlock()
	if ok {
		return items, nil
	}
	items, err := plan(manifests, kinds, house...)
	if err != nil {
		return nil, err
	}
	kept := keep(sum, items)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = kept
	return items, nil
}

// forgetPlan has the next look make its plan anew.
func (m *workMemory) forgetPlan() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = keptPlan{}
}

// keepRecord remembers the AppliedWork as it is now.
func (m *workMemory) keepRecord(record *placementv1beta1.AppliedWork, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record, m.recordAt = record.DeepCopy(), now
}

// knownRecord is the AppliedWork if it is, by the watch, as it was read or written
// last; nil otherwise.
func (m *workMemory) knownRecord(saw memberwatch.Sighting, now time.Time) *placementv1beta1.AppliedWork {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil || !isAsLeft(saw, m.record.ResourceVersion, m.recordAt, now) {
		return nil
	}
	return m.record.DeepCopy()
}

// wroteObject reports whether an object has a resourceVersion with which it was left.
// Of the AppliedWork, earlier ones are ours too.
func (m *workMemory) wroteObject(object memberwatch.Object, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if object.Resource != memberwatch.AppliedWorks() {
		return m.objects[object].resourceVersion == version
	}
	return m.record != nil && (version == m.record.ResourceVersion || isOlder(version, m.record.ResourceVersion))
}

// wrote remembers the resourceVersion of the Work after a write.
func (m *workMemory) wrote(resourceVersion string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written, m.writtenAt = resourceVersion, now
}

// isBehind reports whether a Work of this resourceVersion, from the cache, is
// older than our last write of it. It believes so only for a while: a hub that
// was restored from a backup counts from an earlier number.
func (m *workMemory) isBehind(resourceVersion string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.writtenAt) <= cacheGrace && isOlder(resourceVersion, m.written)
}
