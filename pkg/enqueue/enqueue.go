// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enqueue makes requests for a controller of an event that is about something else
// than what it reconciles: a change of one object has many others looked at.
package enqueue

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
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
