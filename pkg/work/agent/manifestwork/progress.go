// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

const (
	// betweenLooks is how long a ManifestWork that has not changed is let be after a look for
	// the sake of the same object: one whose status changes all the time is read once in that
	// time.
	betweenLooks = time.Second
	// betweenOthers is how long it is let be after a look for the sake of other objects.
	betweenOthers = 50 * time.Millisecond
)

// progress is how far we are with each ManifestWork. All of it can be lost: the next look
// is only slower.
type progress struct {
	retries workqueue.TypedRateLimiter[string] // of refused manifests, by ManifestWork

	mu    sync.Mutex // guards works
	works map[string]step
}

// step is how far we are with one.
type step struct {
	// generation and begun are those of the last look that began, ended is the generation
	// of the last that came to its end.
	generation, ended int64
	begun             time.Time
	// touched are the objects that have changed since the last look began, looked is when a
	// look began for the sake of an object.
	touched map[memberwatch.Object]struct{}
	looked  map[memberwatch.Object]time.Time
	// own is our last write of the ManifestWork.
	own engine.OwnWrite
}

func newProgress() *progress {
	return &progress{
		retries: engine.NewRetries(),
		works:   map[string]step{},
	}
}

// begin says how long a look has to wait; zero: it may begin, and has begun.
func (p *progress) begin(work *workv1.ManifestWork, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work.Name]
	if s.own.IsBehind(work.ResourceVersion, now) {
		return engine.CacheDelay
	}
	if work.DeletionTimestamp == nil && s.ended == work.Generation {
		if wait := s.wait(now); wait > 0 {
			return wait
		}
	}
	if s.generation != work.Generation {
		p.retries.Forget(work.Name)
	}
	s.generation, s.begun = work.Generation, now
	s.account(now)
	p.works[work.Name] = s
	return 0
}

// touch remembers that an object of a ManifestWork has changed.
func (p *progress) touch(work string, object memberwatch.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work]
	if s.touched == nil {
		s.touched = map[memberwatch.Object]struct{}{}
	}
	s.touched[object] = struct{}{}
	p.works[work] = s
}

// wait is how long the next look at the same generation has to wait.
func (s step) wait(now time.Time) time.Duration {
	since := now.Sub(s.begun)
	if since < 0 || since >= betweenLooks {
		return 0
	}
	for object := range s.touched {
		if last, is := s.looked[object]; !is || now.Sub(last) >= betweenLooks {
			return max(betweenOthers-since, 0)
		}
	}
	return betweenLooks - since
}

// account notes for the sake of which objects a look begins.
func (s *step) account(now time.Time) {
	maps.DeleteFunc(s.looked, func(_ memberwatch.Object, last time.Time) bool { return now.Sub(last) >= betweenLooks })
	if len(s.touched) > 0 && s.looked == nil {
		s.looked = map[memberwatch.Object]time.Time{}
	}
	for object := range s.touched {
		s.looked[object] = now
	}
	clear(s.touched)
}

// wrote remembers our write of a ManifestWork: the cache may not have seen it for a moment.
func (p *progress) wrote(work *workv1.ManifestWork, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work.Name]
	s.own.Note(work.ResourceVersion, now)
	p.works[work.Name] = s
}

// end remembers that a look at a generation came to its end.
func (p *progress) end(work *workv1.ManifestWork) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work.Name]
	s.ended = work.Generation
	p.works[work.Name] = s
}

// isNew reports whether no look at this generation has come to its end yet.
func (p *progress) isNew(work *workv1.ManifestWork) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.works[work.Name].ended != work.Generation
}

func (p *progress) forget(work string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.works, work)
	p.retries.Forget(work)
}
