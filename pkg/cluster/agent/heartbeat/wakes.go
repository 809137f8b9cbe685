// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wakes triggers early reports. It has capacity one: the pending report includes all changes.
type wakes chan event.TypedGenericEvent[struct{}]

func (w wakes) wake() {
	select {
	case w <- event.TypedGenericEvent[struct{}]{}:
	default: // a report is pending already
	}
}

// source triggers reports for the member of that InternalMemberCluster.
func (w wakes) source(internal client.ObjectKey) source.Source {
	toMember := func(context.Context, struct{}) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: internal}}
	}
	return source.Channel((chan event.TypedGenericEvent[struct{}])(w), handler.TypedEnqueueRequestsFromMapFunc(toMember))
}
