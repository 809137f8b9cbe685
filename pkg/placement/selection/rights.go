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

// askAgainAfter is the interval at which refused kinds are checked for new rights.
const askAgainAfter = 30 * time.Second

// refuse gives up the watch of a kind that the gateway is not allowed to list or watch; it would retry
// indefinitely. Its cached objects are no longer selected, so it queues the placements if there were
// any.
func (w *Watcher) refuse(ctx context.Context, watch *metainformer.Watch, err error) {
	if !watch.GiveUp() {
		return
	}
	log.FromContext(ctx).Info("The gateway is not allowed to read a kind that a placement selects; grant it list and watch",
		"resource", watch.Resource.GroupResource().String(), "problem", err.Error())
	if !watch.HasSynced() {
		return // The waiting caller sees it.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queueInterested(watch.Resource)
}

// refused treats a kind as refused after a failed read of an object. A watch continues for minutes
// after its right was removed.
func (w *Watcher) refused(ctx context.Context, gvr schema.GroupVersionResource, err error) {
	if watch := w.watches.Of(gvr); watch != nil {
		w.refuse(ctx, watch, err)
	}
}

// unreadable returns the unreadable kinds, sorted: the gateway has no right, or the hub does not list
// them. Call it before and after reading, because the result may change meanwhile.
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
		f.reported = true
		return &Unreadable{Kind: kind, Fault: f.text}
	case !synced:
		return &Unreadable{Kind: kind, Fault: "it has not been listed yet"}
	}
	return nil
}

// askAgain checks the rights to refused kinds. An allowed kind is watched again when the placements
// that need it are reconciled.
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

// queueInterested requires that mu is locked.
func (w *Watcher) queueInterested(gvr schema.GroupVersionResource) {
	for placement, in := range w.interests {
		if _, ok := in.kinds[gvr]; ok {
			w.enqueue(placement)
		}
	}
}
