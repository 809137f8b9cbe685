// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// What is looked at first when more waits than can be done: a Work that is new or
// was changed, then one whose objects changed on the member, then one that was
// refused and is tried again, then all that is looked at only because the agent has
// started or a while has passed.
const (
	changedPriority = 0
	touchedPriority = -10
	retryPriority   = -50
	resyncPriority  = handler.LowPriority
)

// deletedWorks are those whose deletion is not finished.
func (r *Reconciler) deletedWorks(ctx context.Context, _ client.Object) []reconcile.Request {
	deleted := func(work *placementv1beta1.Work) bool { return work.DeletionTimestamp != nil }
	return enqueue.Those(ctx, r.hub, &placementv1beta1.WorkList{}, deleted, client.InNamespace(r.options.HubNamespace))
}

// about is the Work that something on the member is about.
func (r *Reconciler) about(e memberwatch.Event) (client.Object, bool) {
	work := &placementv1beta1.Work{}
	work.Namespace, work.Name = r.options.HubNamespace, e.Work
	if e.Object.Resource != appliedWorks() {
		return work, r.engine.Expects(e)
	}
	name, may := r.options.workOf(e.Object.Name)
	work.Name = name
	return work, !may || r.records.kept.Expects(name, e.Version)
}

// enqueueWorks queues Works that appear, change or go. When the agent starts they all
// appear; most of them it has brought to the member before.
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

// startPriority is that of a Work when the agent starts: one that was changed or
// deleted while there was no agent has nothing reported about its generation.
func startPriority(work *placementv1beta1.Work) int {
	switch {
	case !slices.ContainsFunc(work.Status.Conditions, isAbout(work)):
		return changedPriority
	case wasRefused(work):
		return retryPriority
	}
	return resyncPriority
}

// wasRefused reports whether the last look at the present generation of a Work came to
// no good end, as far as its status tells.
func wasRefused(work *placementv1beta1.Work) bool {
	return slices.ContainsFunc(work.Status.Conditions, func(c metav1.Condition) bool {
		switch c.Type {
		case placementv1beta1.ConditionApplied, placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionRemoved:
			return c.Status == metav1.ConditionFalse && isAbout(work)(c)
		}
		return false
	})
}

// isAbout tells conditions about the present generation of a Work from older ones.
func isAbout(work *placementv1beta1.Work) func(metav1.Condition) bool {
	return func(c metav1.Condition) bool { return c.ObservedGeneration == work.Generation }
}

// enqueueTouched queues a Work because of a change on the member.
func enqueueTouched(_ context.Context, e event.GenericEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
	if byPriority, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(touchedPriority)}, request)
		return
	}
	queue.Add(request)
}
