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

// firstTurn is after what time a Work that fails asks again whether it is its turn.
// It asks less and less often: all Works fail while a member is away.
const (
	firstTurn   = 500 * time.Millisecond
	longestTurn = 10 * time.Second
)

// turns says whether it is a Work's turn, and when next.
type turns struct {
	clock   clock.PassiveClock
	retries workqueue.TypedRateLimiter[string] // of refused manifests, by Work
	waits   workqueue.TypedRateLimiter[string] // of Works that wait at the gate
	slow    gate                               // for Works that fail

	mu    sync.Mutex // guards works
	works map[string]*progress
}

// progress is how far we are with a Work. Nobody looks at a Work twice at a time, so that
// it needs no lock.
type progress struct {
	// generation is that of the Work at the last look.
	generation int64
	// failed is set when the last look at this generation came to no good end.
	failed bool
	// own is our last write of the Work.
	own engine.OwnWrite
}

func newTurns(o Options) *turns {
	return &turns{
		clock:   o.Clock,
		retries: engine.NewRetries(),
		waits:   workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstTurn, longestTurn),
		slow:    newGate(o.Works / 2),
		works:   map[string]*progress{},
	}
}

// of is the progress of a Work, none if there is none.
func (t *turns) of(work string) *progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.works[work] == nil {
		t.works[work] = &progress{}
	}
	return t.works[work]
}

func (t *turns) forget(work string) {
	t.mu.Lock()
	delete(t.works, work)
	t.mu.Unlock()
	t.retries.Forget(work)
	t.waits.Forget(work)
}

// take says when to come again, if it is not the Work's turn, or nil. Then leave has to
// be called in the end.
func (t *turns) take(work *placementv1beta1.Work) (wait *reconcile.Result, leave func()) {
	p := t.of(work.Name)
	if p.own.IsBehind(work.ResourceVersion, t.clock.Now()) {
		return &reconcile.Result{RequeueAfter: engine.CacheDelay}, nil
	}
	if !p.fails(work.Generation) && !(p.isNew(work.Generation) && wasRefused(work)) {
		return nil, func() {}
	}
	if !t.slow.enter() {
		return &reconcile.Result{RequeueAfter: t.waits.When(work.Name), Priority: ptr.To(retryPriority)}, nil
	}
	t.waits.Forget(work.Name)
	return nil, t.slow.leave
}

// wrote remembers our write of a Work: the cache may not have seen it for a moment.
func (t *turns) wrote(work *placementv1beta1.Work) {
	t.of(work.Name).own.Note(work.ResourceVersion, t.clock.Now())
}

// ended remembers how a look at a generation of the Work ended, and reports whether
// it was the first look at that generation.
func (p *progress) ended(generation int64, well bool) (first bool) {
	first = p.generation != generation
	p.generation, p.failed = generation, !well
	return first
}

// isNew reports whether no look at this generation of the Work has ended yet.
func (p *progress) isNew(generation int64) bool { return p.generation != generation }

// fails reports whether the last look at this generation of the Work came to no
// good end.
func (p *progress) fails(generation int64) bool { return p.failed && p.generation == generation }

// gate bounds how many workers are at the same time with Works that failed the last
// time: such a look can take long, for example in a webhook that does not answer,
// and the others shall not wait for it.
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
