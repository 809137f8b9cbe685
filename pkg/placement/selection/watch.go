// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"fleetgate.io/fleetgate/pkg/kube/intern"
	"fleetgate.io/fleetgate/pkg/kube/metainformer"
)

// typeSettling are the delays after which discovery is read again when a type was added or removed. The
// hub's API server publishes a type shortly after it accepted it.
var typeSettling = [...]time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second}

// ErrUnreadable is returned while the hub has not listed a type that a placement needs, without giving
// a reason. Nothing is selected then, because objects that are missing from a list would be removed
// from members.
var ErrUnreadable = errors.New("selected resources cannot be read")

// errUnlisted is returned for a kind whose objects are unknown.
var errUnlisted = errors.New("not listed")

// Watcher watches the metadata of each type that a placement selects, and queues the placements that a
// change concerns.
type Watcher struct {
	kinds  *Kinds
	client metadata.Interface
	rights client.Writer
	settle time.Duration
	// common are strings that objects of all types share.
	common intern.Table

	// started is closed once watches exist and do not change any more.
	started chan struct{}

	// mu guards the fields below. It is not locked while a watch synchronizes.
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// watches has one watch per type of an interest. The hub has refused a watch that is given up.
	watches *metainformer.Set
	// registered watches APIServices. Their names are known before their resources.
	registered *metainformer.Watch
	interests  map[types.NamespacedName]interest
	// faults are the faults of unreadable types.
	faults map[schema.GroupVersionResource]*fault
	// begun is the start of each type's watch.
	begun map[schema.GroupVersionResource]time.Time
	// counted is the number of interests per type, because there are many placements and few types.
	counted map[schema.GroupVersionResource]int
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

// NewWatcher returns a Watcher. It creates SelfSubjectAccessReviews for refused kinds. A placement is
// queued once after changes have settled for that duration.
func NewWatcher(kinds *Kinds, client metadata.Interface, rights client.Writer, settle time.Duration) *Watcher {
	return &Watcher{kinds: kinds, client: client, rights: rights, settle: settle,
		started:   make(chan struct{}),
		interests: map[types.NamespacedName]interest{},
		faults:    map[schema.GroupVersionResource]*fault{},
		begun:     map[schema.GroupVersionResource]time.Time{},
		counted:   map[schema.GroupVersionResource]int{},
	}
}

// NeedLeaderElection keeps standby replicas from watching.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Source queues placements in the snapshot controller.
func (w *Watcher) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// Start runs until the context ends, and returns when all watches have stopped.
func (w *Watcher) Start(ctx context.Context) error {
	watches := metainformer.Begin(ctx, w.client, metainformer.Options{
		Keep: w.common.After(trim), Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		Handler: w.handler, Failed: w.failed,
	})
	defer watches.End()
	w.mu.Lock()
	w.watches = watches
	w.mu.Unlock()

	changed := make(chan struct{}, 1)
	types := metainformer.Begin(ctx, w.client, metainformer.Options{
		Keep: w.common.After(trim),
		Handler: func(context.Context, schema.GroupVersionResource) cache.ResourceEventHandler {
			return handlerFor(func(metav1.Object) { notify(changed) })
		},
	})
	defer types.End()
	_ = types.Need(map[schema.GroupVersionResource]struct{}{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: {},
		apiServices: {},
	}) // It fails only when the context has ended.
	w.mu.Lock()
	w.registered = types.Of(apiServices)
	w.mu.Unlock()
	close(w.started)
	w.followTypes(ctx, changed)
	return nil
}

func notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // One is already waiting.
	}
}

// followTypes reads discovery again when a type was added or removed, and queues all placements.
func (w *Watcher) followTypes(ctx context.Context, changed <-chan struct{}) {
	timer, rights, faults := time.NewTimer(0), time.NewTicker(askAgainAfter), time.NewTicker(retryFaultsAfter)
	timer.Stop()
	defer rights.Stop()
	defer faults.Stop()
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
			if w.kinds.Refresh() {
				w.queueAll()
			}
			continue
		case <-faults.C:
			w.retryFaults(ctx)
			continue
		}
		if step < len(typeSettling) {
			timer.Reset(typeSettling[step])
		}
	}
}

// watch declares what the placement selects now. It waits until the watches for it have listed, are
// refused, or have failed for a while. Watches that nobody needs any more stop. kinds are the types of
// the wants, contents of namespaces included.
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
	for _, watch := range started {
		named := slices.ContainsFunc(wants, func(want want) bool { return want.kind.GVR() == watch.Resource })
		if err := w.await(ctx, watch, named); err != nil {
			return err
		}
	}
	return nil
}

// await waits for the first list of a watch. All callers that need the watch share one timeout, and
// nobody waits again for a watch that is known to fail. A named kind without an answer from the hub
// returns an error, because without it there is nothing to place.
func (w *Watcher) await(ctx context.Context, watch *metainformer.Watch, named bool) error {
	w.mu.Lock()
	until := w.begun[watch.Resource].Add(listTimeout)
	w.mu.Unlock()
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if cache.WaitForCacheSync(waiting.Done(), func() bool { return watch.HasSynced() || watch.GivenUp() }) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.faults[watch.Resource]
	switch {
	case known:
		return nil // unreadable names it.
	case named:
		return fmt.Errorf("%w: %s could not be listed in time", ErrUnreadable, watch.Resource.GroupResource())
	}
	w.faults[watch.Resource] = &fault{text: "it could not be listed in time"}
	return nil
}

func (w *Watcher) apiServed() []schema.GroupVersion {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.registered == nil {
		return nil
	}
	var found []schema.GroupVersion
	for _, name := range w.registered.GetStore().ListKeys() {
		version, group, _ := strings.Cut(name, ".")
		found = append(found, schema.GroupVersion{Group: group, Version: version})
	}
	return found
}

// Forget stops watching for the placement.
func (w *Watcher) Forget(placement types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.follow(placement, interest{}) // It fails only when all watches have ended.
	delete(w.interests, placement)
}

func (w *Watcher) declare(placement types.NamespacedName, in interest) ([]*metainformer.Watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.follow(placement, in); err != nil {
		return nil, fmt.Errorf("watching what %s selects: %w", placement, err)
	}
	needed := make([]*metainformer.Watch, 0, len(in.kinds))
	for gvr := range in.kinds {
		needed = append(needed, w.watches.Of(gvr))
	}
	return needed, nil
}

// follow replaces the interest of a placement, and starts and stops watches accordingly. The caller
// must have locked mu.
func (w *Watcher) follow(placement types.NamespacedName, in interest) error {
	for gvr := range w.interests[placement].kinds {
		if w.counted[gvr]--; w.counted[gvr] == 0 {
			delete(w.counted, gvr)
		}
	}
	for gvr := range in.kinds {
		w.counted[gvr]++
	}
	w.interests[placement] = in
	if w.watches == nil {
		return nil // Not started yet.
	}
	needed := make(map[schema.GroupVersionResource]struct{}, len(w.counted))
	for gvr := range w.counted {
		needed[gvr] = struct{}{}
		if _, already := w.begun[gvr]; !already {
			w.begun[gvr] = time.Now()
		}
	}
	maps.DeleteFunc(w.begun, func(gvr schema.GroupVersionResource, _ time.Time) bool { return w.counted[gvr] == 0 })
	maps.DeleteFunc(w.faults, func(gvr schema.GroupVersionResource, _ *fault) bool { return w.counted[gvr] == 0 })
	return w.watches.Need(needed)
}

// failed gives up a watch that the hub refuses, and records a fault for one that the hub cannot list.
func (w *Watcher) failed(ctx context.Context, watch *metainformer.Watch, r *cache.Reflector, err error) {
	switch {
	case apierrors.IsForbidden(err):
		w.refuse(ctx, watch, err)
	case !watch.HasSynced():
		w.suspect(watch.Resource, fault{text: err.Error()}) // Perhaps nobody waits that long.
		if !OfTheKind(err) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
		}
	case OfTheKind(err):
		w.suspect(watch.Resource, fault{text: err.Error()})
	default:
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}
}

func (w *Watcher) handler(_ context.Context, gvr schema.GroupVersionResource) cache.ResourceEventHandler {
	return handlerFor(func(object metav1.Object) { w.changed(gvr, object) })
}

// handlerFor handles every object that is added, removed, or changed (before and after), but not the
// initial list.
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

// changed queues the placements that a change of the object concerns.
func (w *Watcher) changed(gvr schema.GroupVersionResource, object metav1.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for placement, in := range w.interests {
		for _, want := range in.wants {
			if want.concerns(gvr, object, w.namespaceLabels) {
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

// enqueue requires that mu is locked.
func (w *Watcher) enqueue(placement types.NamespacedName) {
	if w.queue != nil {
		w.queue.AddAfter(reconcile.Request{NamespacedName: placement}, w.settle)
	}
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

var namespaceGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// namespaceLabels requires that mu is locked.
func (w *Watcher) namespaceLabels(name string) map[string]string {
	watch := w.watches.Of(namespaceGVR)
	if watch == nil {
		return nil
	}
	object, ok, err := watch.GetStore().GetByKey(name)
	if err != nil || !ok {
		return nil
	}
	return object.(*metav1.PartialObjectMetadata).Labels
}

// list returns the objects of a kind; namespace "" means cluster-scoped objects, or all. The error is
// errUnlisted if the gateway has no right to the kind, or the hub has not listed it.
func (w *Watcher) list(kind Kind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	watch := w.watches.Of(kind.GVR())
	if watch == nil {
		return nil, fmt.Errorf("listing %s: it is not watched", kind.GVR().GroupResource())
	}
	if watch.GivenUp() || !watch.HasSynced() {
		return nil, errUnlisted // The cached objects may be outdated or incomplete.
	}
	found := watch.GetStore().List()
	if namespace != "" {
		var err error
		if found, err = watch.GetIndexer().ByIndex(cache.NamespaceIndex, namespace); err != nil {
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
