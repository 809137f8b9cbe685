// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/failover"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

const (
	// measurementDelay is how long changes of members' properties are gathered, because each heartbeat
	// can bring some.
	measurementDelay = 200 * time.Millisecond
	// memberDelay is how long decisive changes are gathered for each member of the fleet. The cost of a
	// decision grows with the fleet, and many members of a large fleet join or change at the same time.
	// With a thousand members, placements are scheduled about once a second.
	memberDelay = time.Millisecond
)

// change is the effect that a change of a member can have on decisions.
type change int

const (
	// irrelevant changes none. Most updates are heartbeats.
	irrelevant change = iota
	// measured can change decisions of policies that use properties.
	measured
	// decisive can change any decision.
	decisive
)

// changeOf compares two states of a member. A new taint, or a lost heartbeat, never removes a placement
// and so changes nothing.
func changeOf(before, after *clusterv1beta1.MemberCluster, now time.Time) change {
	was, is := ClusterOf(before), ClusterOf(after)
	switch {
	case was.Leaving != is.Leaving, !maps.Equal(was.Labels, is.Labels), lostTaint(was.Taints, is.Taints),
		!sameNamespaces(&was, &is),
		eligible().Ineligible(&was, now) != "" && eligible().Ineligible(&is, now) == "":
		return decisive
	case !maps.Equal(was.Properties, is.Properties):
		return measured
	}
	return irrelevant
}

func lostTaint(was, is []framework.Taint) bool {
	return slices.ContainsFunc(was, func(t framework.Taint) bool { return !slices.Contains(is, t) })
}

func sameNamespaces(was, is *framework.Cluster) bool {
	if (was.Namespaces == nil) != (is.Namespaces == nil) || len(was.Namespaces) != len(is.Namespaces) {
		return false
	}
	for name := range was.Namespaces {
		if _, ok := is.Namespaces[name]; !ok {
			return false
		}
	}
	return true
}

// memberHandler queues placements for events of members.
type memberHandler struct {
	reader client.Reader
	now    clock.PassiveClock
	// size is the approximate number of members.
	size func() int
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

var _ handler.EventHandler = (*memberHandler)(nil)

func (h *memberHandler) Create(ctx context.Context, _ event.CreateEvent, q queue) { h.all(ctx, q) }

func (h *memberHandler) Delete(ctx context.Context, _ event.DeleteEvent, q queue) { h.all(ctx, q) }

func (h *memberHandler) Generic(context.Context, event.GenericEvent, queue) {}

func (h *memberHandler) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
	after, also := e.ObjectNew.(*clusterv1beta1.MemberCluster)
	if !ok || !also {
		return
	}
	what, pause := changeOf(before, after, h.now.Now()), silence(before, after)
	if what == decisive {
		h.all(ctx, q)
		return
	}
	if what == irrelevant && pause < noticedSilence {
		return
	}
	objects.EachPlacement(ctx, h.reader, func(p placementv1beta1.PlacementObject) {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
		if what == measured && measures(p.GetSpec().Policy) {
			q.AddAfter(request, measurementDelay)
		}
		if terms, _ := failover.TermsOf(p.GetAnnotations()); terms.After > 0 && pause >= terms.After {
			q.Add(request) // It could not have been picked until now.
		}
	})
}

// noticedSilence is the minimum pause between two heartbeats for which the failover terms of placements
// are checked.
const noticedSilence = time.Second

// silence is the pause between the last two heartbeats of a member that was reported as disconnected
// between them.
func silence(before, after *clusterv1beta1.MemberCluster) time.Duration {
	was, is := agentOf(before), agentOf(after)
	if !was.Reported || !is.Reported || was.Heard {
		return 0
	}
	return is.LastHeartbeat.Sub(was.LastHeartbeat)
}

func (h *memberHandler) all(ctx context.Context, q queue) {
	gather := time.Duration(h.size()) * memberDelay
	objects.EachPlacement(ctx, h.reader, func(p placementv1beta1.PlacementObject) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}, gather)
	})
}

// measures reports whether a policy uses properties.
func measures(policy *placementv1beta1.PlacementPolicy) bool {
	if policy == nil || policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return false
	}
	affinity := policy.Affinity.ClusterAffinity
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil &&
		slices.ContainsFunc(required.ClusterSelectorTerms, func(t placementv1beta1.ClusterSelectorTerm) bool { return t.PropertySelector != nil }) {
		return true
	}
	return slices.ContainsFunc(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
		func(p placementv1beta1.PreferredClusterSelector) bool { return p.Preference.PropertySorter != nil })
}

// policyChanges passes all changes of a policy snapshot except those of its status.
func policyChanges() predicate.Predicate {
	return predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// bindingDeletions passes that a binding is being deleted, or is deleted.
func bindingDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
