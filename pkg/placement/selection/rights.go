// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/kube/metainformer"
)

// askAgainAfter is how long a right to a kind may have been there before it is noticed.
const askAgainAfter = 30 * time.Second

// refuse gives up the watch of a kind that the gateway may not list or watch: it would try
// again without end. What it held is not selected any more, so placements look again if
// it held something.
func (w *Watcher) refuse(ctx context.Context, watch *metainformer.Watch, err error) {
	if !watch.GiveUp() {
		return
	}
	log.FromContext(ctx).Info("The gateway is not allowed to read a kind that a placement selects; grant it list and watch",
		"resource", watch.Resource.GroupResource().String(), "problem", err.Error())
	if !watch.HasSynced() {
		return // Who waits for it sees it.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queueInterested(watch.Resource)
}

// refused has a kind treated as refused of which an object could not be read: a watch goes
// on for minutes after the right to it is gone.
func (w *Watcher) refused(ctx context.Context, gvr schema.GroupVersionResource, err error) {
	if watch := w.watches.Of(gvr); watch != nil {
		w.refuse(ctx, watch, err)
	}
}

// unreadable returns those of the kinds that cannot be read, sorted: the gateway may not, or the
// hub does not list them. Ask before and after what depends on it: the answer may change meanwhile.
func (w *Watcher) unreadable(kinds []Kind) []Unreadable {
	var found []Unreadable
	for _, kind := range kinds {
		if u := w.unreadableKind(kind); u != nil {
			found = append(found, *u)
		}
	}
	return merge(found)
}

// unreadableKind is nil if the kind can be read.
func (w *Watcher) unreadableKind(kind Kind) *Unreadable {
	watch := w.watches.Of(kind.GVR())
	if watch == nil || watch.GivenUp() {
		return &Unreadable{Kind: kind}
	}
	synced := watch.HasSynced()
	w.mu.Lock()
	defer w.mu.Unlock()
	f, is := w.faults[kind.GVR()]
	switch {
	case is && (f.confirmed || !synced):
		f.told = true
		return &Unreadable{Kind: kind, Fault: f.text}
	case !synced:
		return &Unreadable{Kind: kind, Fault: "it has not been listed yet"}
	}
	return nil
}

// askAgain asks the hub about the kinds that were refused. One that is allowed now begins
// anew when the placements that need it look again.
func (w *Watcher) askAgain(ctx context.Context) {
	for _, watch := range w.watches.GivenUp() {
		may, err := w.mayRead(ctx, watch.Resource)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Could not find out whether the gateway may read a kind", "resource", watch.Resource.GroupResource().String(), "problem", err.Error())
		}
		if !may {
			continue
		}
		w.mu.Lock()
		if w.watches.Forget(watch) {
			w.queueInterested(watch.Resource)
		}
		w.mu.Unlock()
	}
}

func (w *Watcher) mayRead(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource},
		}}
		if err := w.rights.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether the gateway may %s %s: %w", verb, gvr.GroupResource(), err)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}

// queueInterested must be called with mu held.
func (w *Watcher) queueInterested(gvr schema.GroupVersionResource) {
	for placement, in := range w.interests {
		if _, ok := in.kinds[gvr]; ok {
			w.enqueue(placement)
		}
	}
}
