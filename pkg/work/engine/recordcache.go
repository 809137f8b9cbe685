// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// RecordCache caches the records of a dialect's works: the objects on the member that contain the
// ledgers. As long as the watch reports no change, no read is needed. It is safe for concurrent
// use.
type RecordCache[T client.Object] struct {
	observed func(memberwatch.Object) memberwatch.Observation
	clock    clock.PassiveClock

	mu    sync.Mutex // guards known
	known map[string]cachedRecord[T]
}

// cachedRecord is a record and the time when it was read or written.
type cachedRecord[T client.Object] struct {
	record T
	at     time.Time
}

// NewRecordCache returns an empty cache. saw is [Engine.Observed].
func NewRecordCache[T client.Object](observed func(memberwatch.Object) memberwatch.Observation, clock clock.PassiveClock) *RecordCache[T] {
	return &RecordCache[T]{observed: observed, clock: clock, known: map[string]cachedRecord[T]{}}
}

// Current returns a copy of the cached record if the watch confirms that it is unchanged. absent is
// true if the watch says that the record does not exist. Otherwise the caller has to read it from
// the member.
func (k *RecordCache[T]) Current(key string, object memberwatch.Object) (record T, found, absent bool) {
	observed := k.observed(object)
	if kept, ok := k.of(key); ok && observed.IsUnchangedSince(kept.record.GetResourceVersion(), kept.at, k.clock.Now()) {
		if record, found = kept.record.DeepCopyObject().(T); found {
			return record, true, false
		}
	}
	return record, false, observed.Absent()
}

// Keep caches a copy of a record.
func (k *RecordCache[T]) Keep(key string, record T) {
	copied, ok := record.DeepCopyObject().(T)
	if !ok {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[key] = cachedRecord[T]{copied, k.clock.Now()}
}

// Forget deletes the cached record.
func (k *RecordCache[T]) Forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, key)
}

// Expects reports whether a change of a record to a resourceVersion is our own write, the last or
// an earlier one.
func (k *RecordCache[T]) Expects(key, version string) bool {
	kept, ok := k.of(key)
	if !ok || version == "" {
		return false
	}
	left := kept.record.GetResourceVersion()
	return version == left || memberwatch.IsOlder(version, left)
}

func (k *RecordCache[T]) of(key string) (cachedRecord[T], bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, ok := k.known[key]
	return kept, ok
}
