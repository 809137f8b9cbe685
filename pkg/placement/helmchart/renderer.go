// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// DefaultWorkers is how many charts are rendered at a time.
	DefaultWorkers = 2
	// Pause is the delay after a rendering that failed for lack of a resource.
	Pause = time.Minute
	// remembered limits the bytes of cached results.
	remembered = 64 << 20
	// trifle is the cost of a result without manifests.
	trifle = 1 << 10
)

// ErrRendering is returned while a chart is being rendered. The caller is requeued when it is done.
var ErrRendering = errors.New("the chart is being rendered")

// ErrUnreachable is returned for a chart that could not be fetched.
var ErrUnreachable = errors.New("the chart could not be fetched")

// Engine renders a chart. *Process implements it.
type Engine interface {
	Render(ctx context.Context, r *Release) (*Rendered, error)
}

// Packages fetches packed charts. *oci.Registries implements it. An error is a Problem if the
// author of the source has to fix something.
type Packages interface {
	Fetch(ctx context.Context, source Source) ([]byte, error)
}

// Renderer renders charts one after the other, and caches the last results. It is a Runnable;
// before it runs nothing is rendered.
type Renderer struct {
	engine Engine
	// packages is nil if charts cannot be fetched.
	packages Packages
	scopes   Scopes
	clock    clock.PassiveClock
	jobs     workqueue.TypedInterface[string]
	// memory limits the bytes of cached results.
	memory int

	// mu guards the following fields.
	mu sync.Mutex
	// requested are the Releases to render, by their hash.
	requested map[string]*job
	// done are results by the hash of their Release, order is the order of their arrival.
	done  map[string]*result
	order []string
	size  int
	// exhausting are charts that exceeded their limits for some member, or could not be fetched, by
	// ChartHash.
	exhausting map[string]exhausting
	// queue is where waiting requests are added.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

type job struct {
	release *Release
	waiting []reconcile.Request
}

type result struct {
	manifests []placementv1beta1.Manifest
	err       error
	// until is when to retry after err; zero is never.
	until time.Time
	size  int
}

type exhausting struct {
	err   error
	until time.Time
}

// NewRenderer returns a Renderer. Without packages a chart has to be in the object that describes
// it.
func NewRenderer(engine Engine, packages Packages, scopes Scopes, clock clock.PassiveClock) *Renderer {
	return &Renderer{
		engine: engine, packages: packages, scopes: scopes, clock: clock, jobs: workqueue.NewTyped[string](), memory: remembered,
		requested: map[string]*job{}, done: map[string]*result{}, exhausting: map[string]exhausting{},
	}
}

// Source queues waiting requests when their chart is done.
func (r *Renderer) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = queue
		return nil
	})
}

// Start renders until the context ends.
func (r *Renderer) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range DefaultWorkers {
		group.Go(func() error {
			for r.next(ctx) {
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		r.jobs.ShutDown()
		return nil
	})
	return group.Wait()
}

// Manifests returns the rendered manifests of a Release. The error is ErrRendering if they are not
// ready yet, a Problem if the author has to fix something, and any other error if a retry makes
// sense.
func (r *Renderer) Manifests(release *Release, waiting reconcile.Request) ([]placementv1beta1.Manifest, error) {
	hash, err := release.Hash()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.done[hash]; known != nil {
		if known.until.IsZero() || r.clock.Now().Before(known.until) {
			return known.manifests, known.err
		}
		r.forget(hash)
	}
	if r.requested[hash] == nil {
		r.requested[hash] = &job{release: release}
		r.jobs.Add(hash)
	}
	if j := r.requested[hash]; !slices.Contains(j.waiting, waiting) {
		j.waiting = append(j.waiting, waiting)
	}
	return nil, ErrRendering
}

// next renders one chart, and returns false when the queue has ended.
func (r *Renderer) next(ctx context.Context) bool {
	hash, shutdown := r.jobs.Get()
	if shutdown {
		return false
	}
	defer r.jobs.Done(hash)
	r.mu.Lock()
	release := r.requested[hash].release
	r.mu.Unlock()
	manifests, err := r.render(ctx, release)
	if ctx.Err() != nil {
		return false // Nobody waits any more.
	}
	r.finish(hash, manifests, err)
	return true
}

func (r *Renderer) render(ctx context.Context, release *Release) ([]placementv1beta1.Manifest, error) {
	chart, err := release.ChartHash()
	if err != nil {
		return nil, err
	}
	if err := r.exhausted(chart); err != nil {
		return nil, err
	}
	var rendered *Rendered
	complete, err := r.fetched(ctx, release)
	if err == nil {
		rendered, err = r.engine.Render(ctx, complete)
	}
	if errors.Is(err, ErrExhausted) || errors.Is(err, ErrUnreachable) {
		r.suspect(chart, release.Member.Name, err)
	}
	if err != nil {
		return nil, err
	}
	return manifestsOf(release, rendered.Chart, rendered.Objects, r.scopes)
}

// fetched returns the Release with its package.
func (r *Renderer) fetched(ctx context.Context, release *Release) (*Release, error) {
	if release.Source == nil {
		return release, nil
	}
	if r.packages == nil {
		return nil, &Problem{Chart: release.Source.String(), What: "the gateway takes charts from no registry (placement.helmChartRegistries)"}
	}
	packed, err := r.packages.Fetch(ctx, *release.Source)
	var problem *Problem
	if err != nil && !errors.As(err, &problem) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if err != nil {
		return nil, err
	}
	complete := *release
	complete.Package = packed
	return &complete, nil
}

// exhausted returns an error for a chart that recently exceeded its limits, or could not be
// fetched, for another member. Otherwise a chart that never ends would be tried for every member,
// while all others wait.
func (r *Renderer) exhausted(chart string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.exhausting[chart]
	if !ok {
		return nil
	}
	if r.clock.Now().After(e.until) {
		delete(r.exhausting, chart)
		return nil
	}
	return e.err
}

func (r *Renderer) suspect(chart, member string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	maps.DeleteFunc(r.exhausting, func(_ string, e exhausting) bool { return now.After(e.until) })
	r.exhausting[chart] = exhausting{
		err:   fmt.Errorf("it was tried for member %q not long ago: %w", member, err),
		until: now.Add(Pause),
	}
}

// finish stores a result and requeues those that wait for it.
func (r *Renderer) finish(hash string, manifests []placementv1beta1.Manifest, err error) {
	known := &result{manifests: manifests, err: err, size: trifle}
	for _, m := range manifests {
		known.size += len(m.Raw)
	}
	var problem *Problem
	if err != nil && !errors.As(err, &problem) {
		known.until = r.clock.Now().Add(Pause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.requested[hash]
	delete(r.requested, hash)
	r.done[hash], r.order, r.size = known, append(r.order, hash), r.size+known.size
	for r.size > r.memory && len(r.order) > 1 {
		r.forget(r.order[0])
	}
	if r.queue == nil {
		return
	}
	for _, request := range j.waiting {
		r.queue.Add(request)
	}
}

// forget drops a result. The caller holds the lock.
func (r *Renderer) forget(hash string) {
	r.size -= r.done[hash].size
	delete(r.done, hash)
	r.order = slices.DeleteFunc(r.order, func(h string) bool { return h == hash })
}
