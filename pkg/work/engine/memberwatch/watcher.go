// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/kube/metainformer"
)

func customResourceDefinitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Event reports a change that concerns a work.
type Event struct {
	Work string
	// NewKind is set if a kind that the work waits for may be served now.
	NewKind bool
	// Object is the changed object, if there is exactly one.
	Object Object
	// Version is the new resourceVersion; empty if the object was deleted.
	Version string
}

// Watcher watches a member for all families of works. Create it with New.
type Watcher struct {
	client  metadata.Interface
	endings endings
	// changed wakes Run after the set of resources may have changed.
	changed chan struct{}

	mu     sync.Mutex // guards what follows, and the interests of all views
	views  []*View
	stores map[schema.GroupVersionResource]cache.Store
	// forbidden are the resources that the agent has no right to watch.
	forbidden map[schema.GroupVersionResource]bool
}

// View is the watch of one family. Works are named within their family.
type View struct {
	*Watcher
	// records is the resource of the family's records on the member.
	records  schema.GroupVersionResource
	notify   func(context.Context, Event)
	interest *interest
}

// New returns a watcher without interests. objects is for the few objects that are watched with their
// content; its requests must not have a timeout.
func New(client metadata.Interface, objects dynamic.Interface) *Watcher {
	return &Watcher{
		client:    client,
		endings:   endings{client: objects},
		changed:   make(chan struct{}, 1),
		stores:    map[schema.GroupVersionResource]cache.Store{},
		forbidden: map[schema.GroupVersionResource]bool{},
	}
}

// For adds the view of a family. The watcher calls notify, from several goroutines, for each work
// that a change concerns; notify may block until its context is done. A change of a record concerns
// the work of the same name.
func (w *Watcher) For(records schema.GroupVersionResource, notify func(context.Context, Event)) *View {
	view := &View{Watcher: w, records: records, notify: notify, interest: newInterest()}
	w.mu.Lock()
	w.views = append(w.views, view)
	w.mu.Unlock()
	w.wake()
	return view
}

// Follow replaces the interest of a work: objects, and API groups in which it waits for a kind. If
// both are empty, the work is removed.
func (v *View) Follow(work string, objects []Object, groups []string) {
	v.mu.Lock()
	v.interest.set(work, objects, groups)
	v.mu.Unlock()
	v.wake()
}

func (w *Watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // Run is awake already
	}
}

// Observed returns the state of an object according to the watch.
func (w *Watcher) Observed(object Object) Observation {
	w.mu.Lock()
	store, unwatched := w.stores[object.Resource], w.forbidden[object.Resource]
	w.mu.Unlock()
	if store == nil || unwatched {
		return Observation{}
	}
	// Read Reached first: the object is then at that version or later.
	sighting := Observation{Reached: store.LastStoreSyncResourceVersion()}
	found, exists, err := store.GetByKey(cache.NewObjectName(object.Namespace, object.Name).String())
	if err != nil {
		return Observation{}
	}
	if seen, ok := found.(*metav1.PartialObjectMetadata); ok && exists {
		sighting.Version = seen.ResourceVersion
	}
	return sighting
}

// Unwatched lists the resources of a work's objects that the agent cannot watch, sorted.
func (v *View) Unwatched(work string) []schema.GroupVersionResource {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.forbidden) == 0 {
		return nil
	}
	found := map[schema.GroupVersionResource]struct{}{}
	for _, object := range v.interest.objects[work] {
		if v.forbidden[object.Resource] {
			found[object.Resource] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
}

// setForbidden records whether a resource can be watched. If that changed, it notifies all works
// that follow the resource.
func (w *Watcher) setForbidden(ctx context.Context, resource schema.GroupVersionResource, forbidden bool) {
	w.mu.Lock()
	changed := w.forbidden[resource] != forbidden
	if forbidden {
		w.forbidden[resource] = true
	} else {
		delete(w.forbidden, resource)
	}
	works := make([][]string, len(w.views))
	for i, v := range w.views {
		if changed {
			works[i] = v.interest.inResource(resource)
		}
	}
	views := w.views
	w.mu.Unlock()
	for i, v := range views {
		for _, work := range works[i] {
			v.notify(ctx, Event{Work: work})
		}
	}
}

// Run watches until the context is done and every watch has stopped.
func (w *Watcher) Run(ctx context.Context) error {
	watches := metainformer.Begin(ctx, w.client, metainformer.Options{Keep: slim, Handler: w.handler, Failed: w.failed})
	defer watches.End()
	var endings sync.WaitGroup
	defer endings.Wait()
	for {
		for _, of := range w.endings.unstarted() {
			endings.Go(func() { w.follow(ctx, of) })
		}
		wanted := w.wanted()
		if watches.Need(wanted) == nil {
			w.updateStores(watches, wanted)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.changed:
		}
	}
}

func (w *Watcher) wanted() map[schema.GroupVersionResource]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := map[schema.GroupVersionResource]struct{}{customResourceDefinitions(): {}}
	for _, v := range w.views {
		maps.Copy(wanted, v.interest.resources())
		wanted[v.records] = struct{}{}
	}
	return wanted
}

// updateStores points Saw at the stores of the present watches.
func (w *Watcher) updateStores(watches *metainformer.Set, wanted map[schema.GroupVersionResource]struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.stores)
	for resource := range wanted {
		w.stores[resource] = watches.Of(resource).GetStore()
	}
	maps.DeleteFunc(w.forbidden, func(resource schema.GroupVersionResource, _ bool) bool { return w.stores[resource] == nil })
}

// failed records a forbidden watch. The reflector retries, because the administrator of a member
// can grant the right at any time.
func (w *Watcher) failed(ctx context.Context, watch *metainformer.Watch, _ *cache.Reflector, err error) {
	if apierrors.IsForbidden(err) {
		w.setForbidden(ctx, watch.Resource, true)
	}
	klog.FromContext(ctx).V(1).Info("Watch of a member's resource failed; retrying", "resource", watch.Resource, "err", err)
}

func (w *Watcher) handler(ctx context.Context, resource schema.GroupVersionResource) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.handle(ctx, resource, object, versionOf(object)) },
		UpdateFunc: func(before, after any) {
			if w.differ(resource, before, after) {
				w.handle(ctx, resource, after, versionOf(after))
			}
		},
		DeleteFunc: func(object any) { w.handle(ctx, resource, object, "") },
	}
}

// slim drops fields of a cached object that no decision needs.
func slim(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         full.Namespace,
		Name:              full.Name,
		UID:               full.UID,
		ResourceVersion:   full.ResourceVersion,
		Generation:        full.Generation,
		DeletionTimestamp: full.DeletionTimestamp,
	}}, nil
}

// differ reports whether an update matters. Status updates of a record do not: only the agent
// writes them.
func (w *Watcher) differ(resource schema.GroupVersionResource, before, after any) bool {
	old, okOld := before.(*metav1.PartialObjectMetadata)
	now, okNow := after.(*metav1.PartialObjectMetadata)
	if !okOld || !okNow {
		return true
	}
	if w.isRecord(resource) {
		return old.UID != now.UID || old.Generation != now.Generation ||
			!old.DeletionTimestamp.Equal(now.DeletionTimestamp)
	}
	return old.ResourceVersion != now.ResourceVersion
}

func versionOf(object any) string {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return ""
	}
	return metadata.ResourceVersion
}

// handle notifies works of a change.
func (w *Watcher) handle(ctx context.Context, resource schema.GroupVersionResource, object any, version string) {
	w.setForbidden(ctx, resource, false)
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		return // no object, so that no work follows it
	}
	w.notify(ctx, Object{Resource: resource, Namespace: key.Namespace, Name: key.Name}, version)
}

// notify notifies works of a change. version is empty if the object was deleted.
func (w *Watcher) notify(ctx context.Context, changed Object, version string) {
	w.mu.Lock()
	views := w.views
	w.mu.Unlock()
	for _, v := range views {
		for _, event := range v.touched(changed) {
			event.Object, event.Version = changed, version
			v.notify(ctx, event)
		}
	}
}

func (w *Watcher) isRecord(resource schema.GroupVersionResource) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.views, func(v *View) bool { return v.records == resource })
}

// touched returns the events for a change of an object.
func (v *View) touched(object Object) []Event {
	if object.Resource == v.records {
		return []Event{{Work: object.Name}}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var events []Event
	for _, work := range v.interest.in(object) {
		events = append(events, Event{Work: work})
	}
	if object.Resource != customResourceDefinitions() {
		return events
	}
	// The name of a CustomResourceDefinition is <plural>.<group>.
	_, group, _ := strings.Cut(object.Name, ".")
	for _, work := range slices.Sorted(maps.Keys(v.interest.waiting[group])) {
		events = append(events, Event{Work: work, NewKind: true})
	}
	return events
}
