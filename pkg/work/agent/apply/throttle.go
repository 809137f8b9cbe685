// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// firstDelay is the first delay before a failing Work is retried while the gate is full. The delay grows,
// because all Works fail while a member is unreachable.
const (
	firstDelay   = 500 * time.Millisecond
	longestDelay = 10 * time.Second
)

// throttle decides which Works are reconciled now.
type throttle struct {
	clock   clock.PassiveClock
	retries workqueue.TypedRateLimiter[string] // by Work, after refused manifests
	waits   workqueue.TypedRateLimiter[string] // by Work, while the gate is full
	slow    gate                               // for failing Works

	mu    sync.Mutex // guards works
	works map[string]*progress
}

// progress is the state of one Work. A Work is never reconciled twice at the same time, so it needs
// no lock.
type progress struct {
	// generation is the generation of the last reconcile.
	generation int64
	// failed is set if the last reconcile of this generation failed.
	failed bool
	// own is our last write of the Work.
	own engine.OwnWrite
}

func newThrottle(o Options) *throttle {
	return &throttle{
		clock:   o.Clock,
		retries: engine.NewRetries(),
		waits:   workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, longestDelay),
		slow:    newGate(o.Works / 2),
		works:   map[string]*progress{},
	}
}

func (t *throttle) of(work string) *progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.works[work] == nil {
		t.works[work] = &progress{}
	}
	return t.works[work]
}

func (t *throttle) forget(work string) {
	t.mu.Lock()
	delete(t.works, work)
	t.mu.Unlock()
	t.retries.Forget(work)
	t.waits.Forget(work)
}

// admit returns when to retry if the Work must wait. Otherwise wait is nil and the caller
// must call leave at the end.
func (t *throttle) admit(work *placementv1beta1.Work) (wait *reconcile.Result, leave func()) {
	p := t.of(work.Name)
	if p.own.IsBehind(work.ResourceVersion, t.clock.Now()) {
		return &reconcile.Result{RequeueAfter: engine.CacheDelay}, nil
	}
	if !(p.failed && p.generation == work.Generation) && !(p.isNew(work.Generation) && wasRefused(work)) {
		return nil, func() {}
	}
	if !t.slow.enter() {
		return &reconcile.Result{RequeueAfter: t.waits.When(work.Name), Priority: ptr.To(retryPriority)}, nil
	}
	t.waits.Forget(work.Name)
	return nil, t.slow.leave
}

// wrote records our write of a Work, which the cache may lack for a moment.
func (t *throttle) wrote(work *placementv1beta1.Work) {
	t.of(work.Name).own.Note(work.ResourceVersion, t.clock.Now())
}

// ended records the result of a reconcile, and reports whether it was the first of that generation.
func (p *progress) ended(generation int64, succeeded bool) (first bool) {
	first = p.generation != generation
	p.generation, p.failed = generation, !succeeded
	return first
}

// isNew reports whether no reconcile of this generation has ended yet.
func (p *progress) isNew(generation int64) bool { return p.generation != generation }

// gate limits the workers for Works that failed the last time. Such a reconcile can take long, for
// example because a webhook does not answer, and must not delay the others.
type gate chan struct{}

func newGate(width int) gate { return make(gate, max(width, 1)) }

func (l gate) enter() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l gate) leave() { <-l }
