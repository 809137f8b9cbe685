// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// Priorities of the queue. New and changed Works come first, then Works whose objects changed on
// the member, then retries after a refusal. Reconciles for an agent start or a resync come last.
const (
	changedPriority = 0
	touchedPriority = -10
	retryPriority   = -50
	resyncPriority  = handler.LowPriority
)

// deletedWorks returns the Works with an unfinished deletion.
func (r *Reconciler) deletedWorks(ctx context.Context, _ client.Object) []reconcile.Request {
	deleted := func(work *placementv1beta1.Work) bool { return work.DeletionTimestamp != nil }
	return enqueue.Those(ctx, r.hub, &placementv1beta1.WorkList{}, deleted, client.InNamespace(r.options.HubNamespace))
}

// family decides what holds for all Works.
type family struct{ *Reconciler }

var _ engine.Family = family{}

// Reserved implements engine.Family.
func (r family) Reserved(object *unstructured.Unstructured) string {
	return reserved.Why(object, r.options.ReservedNamespaces...)
}

// ReservedNamespace implements engine.Family.
func (family) ReservedNamespace(namespace metav1.Object) string { return reserved.Existing(namespace) }

// WorkOf returns the Work that a change on the member concerns.
func (r family) WorkOf(e memberwatch.Event) (client.Object, bool) {
	work := &placementv1beta1.Work{}
	work.Namespace, work.Name = r.options.HubNamespace, e.Work
	if e.Object.Resource != appliedWorks() {
		return work, r.engine.Expects(e)
	}
	name, may := r.options.workOf(e.Object.Name)
	work.Name = name
	return work, !may || r.records.kept.Expects(name, e.Version)
}

// enqueueWorks enqueues Works that are created, changed or deleted. At the start of the agent all
// Works are created events, although most are applied already.
func enqueueWorks() handler.EventHandler {
	each := handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			work, isWork := e.Object.(*placementv1beta1.Work)
			byPriority, isByPriority := queue.(priorityqueue.PriorityQueue[reconcile.Request])
			if !isWork || !isByPriority || !e.IsInInitialList {
				each.Create(ctx, e, queue)
				return
			}
			request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)}
			byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(startPriority(work))}, request)
		},
		UpdateFunc: each.Update,
		DeleteFunc: each.Delete,
	}
}

// startPriority is the priority of a Work when the agent starts. A Work that was changed or deleted
// while no agent ran has no condition with its generation.
func startPriority(work *placementv1beta1.Work) int {
	switch {
	case !slices.ContainsFunc(work.Status.Conditions, isAbout(work)):
		return changedPriority
	case wasRefused(work):
		return retryPriority
	}
	return resyncPriority
}

// wasRefused reports whether the status shows that the last reconcile of the present generation
// failed.
func wasRefused(work *placementv1beta1.Work) bool {
	return slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
		switch c.Type {
		case placementv1beta1.ConditionApplied, placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionRemoved:
			return c.Status == metav1.ConditionFalse && isAbout(work)(c)
		}
		return false
	})
}

// isAbout selects conditions of the present generation of a Work.
func isAbout(work *placementv1beta1.Work) func(metav1.Condition) bool {
	return func(c metav1.Condition) bool { return c.ObservedGeneration == work.Generation }
}

// enqueueTouched enqueues a Work after a change on the member.
func enqueueTouched(_ context.Context, e event.GenericEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(touchedPriority)}, request)
		return
	}
	queue.Add(request)
}
