// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enqueue creates reconcile requests from events about other objects: a change of one
// object requeues many others. It also filters updates.
package enqueue

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// All returns requests for all objects that a cache lists into the given list.
func All(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	return Those(ctx, cache, list, func(client.Object) bool { return true }, options...)
}

// Those returns requests for the listed objects that are wanted. They are not copied: wanted must
// not change them. A cache fails to list only when the program stops. That is logged, and the
// result is empty.
func Those[T client.Object](ctx context.Context, cache client.Reader, list client.ObjectList, wanted func(T) bool, options ...client.ListOption) []reconcile.Request {
	var objects []T
	err := cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(T); ok && wanted(object) {
				objects = append(objects, object)
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not list what may be concerned by a change of something else", "list", fmt.Sprintf("%T", list))
		return nil
	}
	return Each(objects)
}

// Each returns requests for these objects.
func Each[T client.Object](objects []T) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(objects))
	for _, object := range objects {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return requests
}

// After queues, after a delay, the objects that an event concerns, so that concurrent changes are
// handled together. An update also concerns the objects of the previous state.
func After(delay time.Duration, concerned func(client.Object) []types.NamespacedName) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(object client.Object, q queue) {
		for _, key := range concerned(object) {
			q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			add(e.ObjectOld, q)
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// OnUpdate accepts only updates for which the function is true.
func OnUpdate[T client.Object](isNews func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  Updates(isNews).Update,
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Updates accepts, for objects of a type, updates for which the function is true, and all creations
// and deletions.
func Updates[T client.Object](isNews func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, also := e.ObjectNew.(T)
		return ok && also && isNews(before, after)
	}}
}
