// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enqueue makes requests for a controller of an event that is about something else
// than what it reconciles: a change of one object has many others looked at. It also tells
// which updates are news.
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

// All are requests for all objects that a cache lists into the given list.
func All(ctx context.Context, cache client.Reader, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	return Those(ctx, cache, list, func(client.Object) bool { return true }, options...)
}

// Those are requests for the listed objects that are wanted. They are not copied: wanted
// must not change them. A cache fails to list when the program stops, only; that is logged,
// and the result is empty.
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

// Each are requests for these objects.
func Each[T client.Object](objects []T) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(objects))
	for _, object := range objects {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return requests
}

// After queues, after a delay, what an object concerns: changes that come together are looked at
// together. An update concerns what the object was about before as well.
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

// OnUpdate lets through updates that a function takes for news, and nothing else.
func OnUpdate[T client.Object](isNews func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  Updates(isNews).Update,
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Updates lets through, of objects of a type, updates that a function takes for news, and all
// that comes and goes.
func Updates[T client.Object](isNews func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, also := e.ObjectNew.(T)
		return ok && also && isNews(before, after)
	}}
}
