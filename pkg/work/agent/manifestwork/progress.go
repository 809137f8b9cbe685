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
	// betweenLooks is the minimum interval between two reconciles of an unchanged ManifestWork for
	// the same object. An object whose status changes constantly is read once per interval.
	betweenLooks = time.Second
	// betweenOthers is the minimum interval if another object changed.
	betweenOthers = 50 * time.Millisecond
)

// progress is the state of all ManifestWorks. Losing it only makes the next reconcile slower.
type progress struct {
	retries workqueue.TypedRateLimiter[string] // by ManifestWork, after refused manifests

	mu    sync.Mutex // guards works
	works map[string]step
}

// step is the state of one ManifestWork.
type step struct {
	// generation and begun describe the last reconcile that began; ended is the generation of the
	// last that completed.
	generation, ended int64
	begun             time.Time
	// touched are the objects that changed since the last reconcile began. looked is when a
	// reconcile last began for an object.
	touched  map[memberwatch.Object]struct{}
	lastRead map[memberwatch.Object]time.Time
	// own is our last write of the ManifestWork.
	own engine.OwnWrite
}

func newProgress() *progress {
	return &progress{
		retries: engine.NewRetries(),
		works:   map[string]step{},
	}
}

// begin returns how long a reconcile has to wait. If zero, it has begun.
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

// touch records that an object of a ManifestWork has changed.
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

// wait returns how long the next reconcile of the same generation has to wait.
func (s step) wait(now time.Time) time.Duration {
	since := now.Sub(s.begun)
	if since < 0 || since >= betweenLooks {
		return 0
	}
	for object := range s.touched {
		if last, is := s.lastRead[object]; !is || now.Sub(last) >= betweenLooks {
			return max(betweenOthers-since, 0)
		}
	}
	return betweenLooks - since
}

// account records for which objects a reconcile begins.
func (s *step) account(now time.Time) {
	maps.DeleteFunc(s.lastRead, func(_ memberwatch.Object, last time.Time) bool { return now.Sub(last) >= betweenLooks })
	if len(s.touched) > 0 && s.lastRead == nil {
		s.lastRead = map[memberwatch.Object]time.Time{}
	}
	for object := range s.touched {
		s.lastRead[object] = now
	}
	clear(s.touched)
}

// wrote records our write of a ManifestWork, which the cache may lack for a moment.
func (p *progress) wrote(work *workv1.ManifestWork, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work.Name]
	s.own.Note(work.ResourceVersion, now)
	p.works[work.Name] = s
}

// end records that a reconcile of a generation completed.
func (p *progress) end(work *workv1.ManifestWork) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.works[work.Name]
	s.ended = work.Generation
	p.works[work.Name] = s
}

// isNew reports whether no reconcile of this generation has completed yet.
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
