// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
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
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bindingsOf queues the binding of a Work. When a Work is deleted, it also queues the bindings to the
// same member that may have waited for its name.
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
	for _, request := range r.bindingsAt(ctx, member, func(b placementv1beta1.BindingObject) bool { return mayWaitFor(b, work) }) {
		q.Add(request)
	}
}

func mayWaitFor(b, work client.Object) bool {
	base := b.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if b.GetNamespace() != "" {
		base = b.GetNamespace() + "." + base
	}
	return strings.HasPrefix(work.GetName(), base+"-")
}

// bindingsTo queues the wanted bindings to a member.
func (r *Reconciler) bindingsTo(wanted func(placementv1beta1.BindingObject) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, member client.Object) []reconcile.Request {
		return r.bindingsAt(ctx, member.GetName(), wanted)
	})
}

func all(placementv1beta1.BindingObject) bool { return true }

func (r *Reconciler) bindingsAt(ctx context.Context, member string, wanted func(placementv1beta1.BindingObject) bool) []reconcile.Request {
	at := client.MatchingFields{bindingsByMember: member}
	return append(enqueue.Those(ctx, r.Client, &placementv1beta1.ClusterResourceBindingList{}, wanted, at),
		enqueue.Those(ctx, r.Client, &placementv1beta1.ResourceBindingList{}, wanted, at)...)
}

// workChanges drops updates that change nothing that dispatch uses.
func workChanges() predicate.Predicate {
	return enqueue.Updates(func(before, after *placementv1beta1.Work) bool {
		return before.Generation != after.Generation ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Status, after.Status)
	})
}

// bindingChanges passes changes of the spec, and that an update run starts the rollout of an unchanged one.
func bindingChanges() predicate.Predicate {
	return predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, enqueue.OnUpdate(func(before, after placementv1beta1.BindingObject) bool {
		return !placementv1beta1.StartedByRun(before) && placementv1beta1.StartedByRun(after)
	}))
}

// memberReplaced passes that a member was created, also after another of the same name, or is being
// deleted, or is deleted.
func memberReplaced() predicate.Predicate {
	return enqueue.Updates(func(before, after client.Object) bool {
		return (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || before.GetUID() != after.GetUID()
	})
}

// reportBackChanges passes changes of a placement's reportBackStrategy.
func reportBackChanges() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after placementv1beta1.PlacementObject) bool {
		return !equality.Semantic.DeepEqual(before.GetSpec().Strategy.ReportBackStrategy, after.GetSpec().Strategy.ReportBackStrategy)
	})
}

func (r *Reconciler) bindingsFor() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, placement client.Object) []reconcile.Request {
		bindings, err := objects.Bindings(ctx, r.Client, client.ObjectKeyFromObject(placement))
		if err != nil {
			// The list is from memory, so it fails only when the gateway stops.
			ctrl.LoggerFrom(ctx).Error(err, "Could not list the bindings of a placement", "placement", placement.GetName())
		}
		return enqueue.Each(bindings)
	})
}
