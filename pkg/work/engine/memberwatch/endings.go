// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
)

// maxEndings limits the watches of single objects. Beyond it, the last state of an object may stay unknown.
const maxEndings = 100

// endings are watches of single objects, whose last states they keep. The member deletes an expiring Job as
// soon as it ended, with ttlSecondsAfterFinished 0 within milliseconds. The watches of resources carry
// metadata only, and a read then finds nothing, so nobody would know how it ended.
type endings struct {
	client dynamic.Interface

	mu sync.Mutex // guards what follows
	// all has the oldest first.
	all []*ending
}

// ending is the watch of one object, from a resourceVersion on.
type ending struct {
	object Object
	uid    types.UID
	from   string
	// started is set by Run, ended when the object was deleted or the watch has failed.
	started, ended bool
	last           *unstructured.Unstructured
}

// FollowEnd watches an object of this version until it is deleted, so that LastState knows how it ended.
// It does nothing if the object is already followed, or if too many are.
func (w *Watcher) FollowEnd(object Object, version *unstructured.Unstructured) {
	if w.endings.add(object, version) {
		w.wake()
	}
}

// LastState returns the last seen state of an object that FollowEnd follows, or followed not long ago; nil
// if there is none.
func (w *Watcher) LastState(uid types.UID) *unstructured.Unstructured {
	w.endings.mu.Lock()
	defer w.endings.mu.Unlock()
	for _, e := range w.endings.all {
		if e.uid == uid {
			return e.last
		}
	}
	return nil
}

func (e *endings) add(object Object, version *unstructured.Unstructured) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(e.all, func(of *ending) bool { return of.uid == version.GetUID() }) {
		return false
	}
	if len(e.all) >= maxEndings {
		oldest := slices.IndexFunc(e.all, func(of *ending) bool { return of.ended })
		if oldest < 0 {
			return false
		}
		e.all = slices.Delete(e.all, oldest, oldest+1)
	}
	e.all = append(e.all, &ending{object: object, uid: version.GetUID(), from: version.GetResourceVersion()})
	return true
}

// unstarted returns the endings whose watch has to be started, and counts them as started.
func (e *endings) unstarted() []*ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*ending
	for _, of := range e.all {
		if !of.started {
			of.started = true
			found = append(found, of)
		}
	}
	return found
}

// follow watches until the object is deleted. Then it notifies the works that follow the object: the watch of
// the resource may have reported the deletion before this one did.
func (w *Watcher) follow(ctx context.Context, of *ending) {
	err := w.endings.watch(ctx, of)
	w.endings.mu.Lock()
	of.ended = true
	w.endings.mu.Unlock()
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Watch of an object that expires failed", "resource", of.object.Resource,
			"object", klog.KRef(of.object.Namespace, of.object.Name), "err", err)
		return
	}
	w.notify(ctx, of.object, "")
}

// watch returns nil once the object is deleted.
func (e *endings) watch(ctx context.Context, of *ending) error {
	objects := e.client.Resource(of.object.Resource).Namespace(of.object.Namespace)
	watch, err := watchtools.NewRetryWatcherWithContext(ctx, of.from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.FieldSelector = "metadata.name=" + of.object.Name
			return objects.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		state, ok := event.Object.(*unstructured.Unstructured)
		if !ok || state.GetUID() != of.uid {
			return context.Cause(ctx) // The version is too old, or another object has the name: it is gone.
		}
		state.SetManagedFields(nil)
		e.mu.Lock()
		of.last = state
		e.mu.Unlock()
		if event.Type == apiwatch.Deleted {
			return nil
		}
	}
	return context.Cause(ctx)
}
