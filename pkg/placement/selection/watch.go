// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// typeSettling is when, after a type came or went, discovery is asked again: the
// hub's API server tells of a type a little after it accepted it.
var typeSettling = [...]time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second}

// ErrUnreadable is returned when the hub does not list a type that a placement
// needs. Nothing is selected then: what is missing from a list would be taken off
// the members.
var ErrUnreadable = errors.New("selected resources cannot be read")

// Watcher runs one metadata-only informer for each type that some placement
// selects, and queues the placements that a change concerns.
type Watcher struct {
	kinds  *Kinds
	client metadata.Interface
	rights client.Writer
	settle time.Duration

	// started is closed once run and queue may be used.
	started chan struct{}
	//lint:ignore containedctx It is the life of all informers, which start one by one.
	run     context.Context
	running sync.WaitGroup

	// mu guards what follows. It is not held while an informer synchronizes.
	mu        sync.Mutex
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
	informers map[schema.GroupVersionResource]*informer
	interests map[types.NamespacedName]interest
}

// informer is a running informer.
type informer struct {
	cache.SharedIndexInformer
	stop context.CancelFunc
	// refused is true once the hub has said that the gateway may not list or watch the kind.
	// It has stopped then.
	refused atomic.Bool
}

// interest is what one placement selects.
type interest struct {
	wants []want
	kinds map[schema.GroupVersionResource]Kind
}

var (
	_ manager.Runnable               = (*Watcher)(nil)
	_ manager.LeaderElectionRunnable = (*Watcher)(nil)
)

// NewWatcher returns a Watcher, which creates SelfSubjectAccessReviews where it was
// refused a kind. Changes are gathered for the duration settle before a placement is
// queued.
func NewWatcher(kinds *Kinds, client metadata.Interface, rights client.Writer, settle time.Duration) *Watcher {
	return &Watcher{kinds: kinds, client: client, rights: rights, settle: settle,
		started:   make(chan struct{}),
		informers: map[schema.GroupVersionResource]*informer{},
		interests: map[types.NamespacedName]interest{},
	}
}

// NeedLeaderElection keeps the informers away from standby replicas.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Source gives the controller that makes snapshots its queue's second feed.
func (w *Watcher) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// Start runs until the context ends, and returns when all informers have
// stopped.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer w.end(cancel)
	w.run = ctx
	close(w.started)

	changed := make(chan struct{}, 1)
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		if _, err := w.inform(ctx, gvr, func(metav1.Object) { notify(changed) }); err != nil {
			return err
		}
	}
	w.followTypes(ctx, changed)
	return nil
}

// end returns when all informers have stopped. None starts once it has begun.
func (w *Watcher) end(cancel context.CancelFunc) {
	w.mu.Lock()
	cancel()
	w.mu.Unlock()
	w.running.Wait()
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // One is waiting already.
	}
}

// followTypes asks discovery again whenever a type came or went, and has all
// placements look again.
func (w *Watcher) followTypes(ctx context.Context, changed <-chan struct{}) {
	timer, rights := time.NewTimer(0), time.NewTicker(askAgainAfter)
	timer.Stop()
	defer rights.Stop()
	step := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			step = 0
		case <-timer.C:
			w.kinds.Invalidate()
			w.queueAll()
			step++
		case <-rights.C:
			w.askAgain(ctx)
			continue
		}
		if step < len(typeSettling) {
			timer.Reset(typeSettling[step])
		}
	}
}

// watch declares what the placement selects now and waits until the informers
// for it are filled, or refused; informers that nobody needs any more stop. kinds
// are the types of the wants, contents of namespaces included.
func (w *Watcher) watch(ctx context.Context, placement types.NamespacedName, wants []want, kinds []Kind) error {
	select {
	case <-w.started:
	case <-ctx.Done():
		return ctx.Err()
	}
	needed := make(map[schema.GroupVersionResource]Kind, len(kinds))
	for _, kind := range kinds {
		needed[kind.GVR()] = kind
	}
	started, err := w.declare(placement, interest{wants: wants, kinds: needed})
	if err != nil {
		return err
	}
	for gvr, inf := range started {
		if !cache.WaitForCacheSync(ctx.Done(), func() bool { return inf.HasSynced() || inf.refused.Load() }) {
			return fmt.Errorf("%w: %s could not be listed in time", ErrUnreadable, gvr.GroupResource())
		}
	}
	return nil
}

// Forget ends what watch began for the placement.
func (w *Watcher) Forget(placement types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.interests, placement)
	w.stopUnneeded()
}

func (w *Watcher) declare(placement types.NamespacedName, in interest) (map[schema.GroupVersionResource]*informer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.run.Err(); err != nil {
		return nil, fmt.Errorf("watching what %s selects: %w", placement, err)
	}
	w.interests[placement] = in
	w.stopUnneeded()
	needed := make(map[schema.GroupVersionResource]*informer, len(in.kinds))
	for gvr, kind := range in.kinds {
		inf, ok := w.informers[gvr]
		if !ok {
			var err error
			inf, err = w.inform(w.run, gvr, func(object metav1.Object) { w.changed(kind, object) })
			if err != nil {
				return nil, err
			}
			w.informers[gvr] = inf
		}
		needed[gvr] = inf
	}
	return needed, nil
}

// stopUnneeded must be called with mu held.
func (w *Watcher) stopUnneeded() {
	for gvr, inf := range w.informers {
		if !w.needs(gvr) {
			inf.stop()
			delete(w.informers, gvr)
		}
	}
}

func (w *Watcher) needs(gvr schema.GroupVersionResource) bool {
	for _, in := range w.interests {
		if _, ok := in.kinds[gvr]; ok {
			return true
		}
	}
	return false
}

// inform starts an informer. changed gets every object that was added, removed,
// or altered, before and after, but not those that are there at the start.
func (w *Watcher) inform(ctx context.Context, gvr schema.GroupVersionResource, changed func(metav1.Object)) (*informer, error) {
	shared := metadatainformer.NewFilteredMetadataInformer(w.client, gvr, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
	if err := shared.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvr.GroupResource(), err)
	}
	if _, err := shared.AddEventHandler(handlerFor(changed)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvr.GroupResource(), err)
	}
	ctx, stop := context.WithCancel(ctx)
	inf := &informer{SharedIndexInformer: shared, stop: stop}
	if err := shared.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			w.refuse(ctx, gvr, inf, err)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}); err != nil {
		stop()
		return nil, fmt.Errorf("watching %s: %w", gvr.GroupResource(), err)
	}
	w.running.Go(func() { shared.RunWithContext(ctx) })
	return inf, nil
}

func handlerFor(changed func(metav1.Object)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if m, ok := object.(metav1.Object); ok && !initial {
				changed(m)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(metav1.Object)
			now, also := after.(metav1.Object)
			if ok && also && old.GetResourceVersion() != now.GetResourceVersion() {
				changed(old)
				changed(now)
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if m, ok := object.(metav1.Object); ok {
				changed(m)
			}
		},
	}
}

// trim keeps of an object's metadata what selection asks for.
func trim(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	m.ManagedFields = nil
	account, ok := m.Annotations[corev1.ServiceAccountNameKey]
	m.Annotations = nil
	if ok {
		m.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	}
	return m, nil
}

// changed queues the placements that a change of the object concerns.
func (w *Watcher) changed(kind Kind, object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for placement, in := range w.interests {
		for _, want := range in.wants {
			if want.concerns(kind, object, w.namespaceLabels) {
				w.enqueue(placement)
				break
			}
		}
	}
}

func (w *Watcher) queueAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for placement := range w.interests {
		w.enqueue(placement)
	}
}

// enqueue must be called with mu held.
func (w *Watcher) enqueue(placement types.NamespacedName) {
	if w.queue != nil {
		w.queue.AddAfter(reconcile.Request{NamespacedName: placement}, w.settle)
	}
}

var namespaceGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// namespaceLabels must be called with mu held.
func (w *Watcher) namespaceLabels(name string) map[string]string {
	inf, ok := w.informers[namespaceGVR]
	if !ok {
		return nil
	}
	object, ok, err := inf.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return object.(*metav1.PartialObjectMetadata).Labels
}

// list returns the objects of a kind; namespace "" means cluster-scoped ones, or
// all. Of one that the gateway may not read there are none.
func (w *Watcher) list(kind Kind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	w.mu.Lock()
	inf, ok := w.informers[kind.GVR()]
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("listing %s: it is not watched", kind.GVR().GroupResource())
	}
	if inf.refused.Load() {
		return nil, nil // What it held may be old.
	}
	found := inf.GetStore().List()
	if namespace != "" {
		var err error
		if found, err = inf.GetIndexer().ByIndex(cache.NamespaceIndex, namespace); err != nil {
			return nil, fmt.Errorf("listing %s in %q: %w", kind.GVR().GroupResource(), namespace, err)
		}
	}
	objects := make([]*metav1.PartialObjectMetadata, 0, len(found))
	for _, object := range found {
		if m, ok := object.(*metav1.PartialObjectMetadata); ok && m.DeletionTimestamp == nil {
			objects = append(objects, m)
		}
	}
	return objects, nil
}
