// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bindingsOf queues the binding of a Work; when a Work is gone also those to
// the same member that may have waited for its name.
func (r *Reconciler) bindingsOf() handler.EventHandler {
	owner := func(object client.Object, q queue) {
		name := object.GetLabels()[placementv1beta1.ParentBindingLabel]
		if name == "" {
			return
		}
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{
			Namespace: object.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel], Name: name,
		}})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { owner(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			owner(e.ObjectOld, q)
			owner(e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			owner(e.Object, q)
			r.waiting(ctx, e.Object, q)
		},
	}
}

func (r *Reconciler) waiting(ctx context.Context, work client.Object, q queue) {
	member, ok := clusterv1beta1.MemberOfNamespace(work.GetNamespace())
	if !ok {
		return
	}
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.ResourceBindingList{}} {
		err := r.Client.List(ctx, list, client.MatchingFields{bindingsByMember: member})
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if b, ok := item.(client.Object); ok && mayWaitFor(b, work) {
					q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				}
				return nil
			})
		}
		if err != nil {
			// The list comes from memory: it fails when the gateway stops, only.
			ctrl.LoggerFrom(ctx).Error(err, "Could not list the bindings of a member after a work went", "member", member)
			return
		}
	}
}

// mayWaitFor reports whether a binding could have a Work of that name.
func mayWaitFor(b, work client.Object) bool {
	base := b.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if b.GetNamespace() != "" {
		base = b.GetNamespace() + "." + base
	}
	return strings.HasPrefix(work.GetName(), base+"-")
}

// bindingsTo queues the bindings to a member that have overrides.
func (r *Reconciler) bindingsTo() handler.EventHandler {
	return r.bindingsThat(r.overriddenBindings)
}

// allBindingsTo queues all bindings to a member.
func (r *Reconciler) allBindingsTo() handler.EventHandler {
	return r.bindingsThat(func(ctx context.Context, member client.Object) ([]types.NamespacedName, error) {
		return r.bindingsWith(ctx, member, func(placementv1beta1.BindingObject) bool { return true })
	})
}

func (r *Reconciler) bindingsThat(find func(context.Context, client.Object) ([]types.NamespacedName, error)) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, member client.Object) []reconcile.Request {
		keys, err := find(ctx, member)
		if err != nil {
			// As above: the gateway stops.
			ctrl.LoggerFrom(ctx).Error(err, "Could not list the bindings of a member that changed", "member", member.GetName())
		}
		requests := make([]reconcile.Request, 0, len(keys))
		for _, key := range keys {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}

// workChanges leaves out updates that change nothing which dispatch looks at.
func workChanges() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*placementv1beta1.Work)
			after, also := e.ObjectNew.(*placementv1beta1.Work)
			return !ok || !also || before.Generation != after.Generation ||
				(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
				!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
				!equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}

// comeOrGone lets pass that a member came, also one that had left just before, begins to
// go, or is gone.
func comeOrGone() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
