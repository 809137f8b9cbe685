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
	// measurementDelay is how long changes of members' properties are gathered: each
	// heartbeat can bring some.
	measurementDelay = 200 * time.Millisecond
	// memberDelay is how long each member of the fleet has decisive changes of others
	// gathered. What a decision costs grows with the fleet, and many members of a large
	// one join or change at a time: a thousand are decided about once a second.
	memberDelay = time.Millisecond
)

// change is what a change of a member can mean for decisions.
type change int

const (
	// irrelevant can change none. Most updates are heartbeats.
	irrelevant change = iota
	// measured can change those that ask for properties.
	measured
	// decisive can change any.
	decisive
)

// changeOf compares two states of a member. A new taint, or a cluster that falls
// silent, never takes a placement away and so changes nothing.
func changeOf(before, after *clusterv1beta1.MemberCluster, now time.Time) change {
	was, is := ClusterOf(before), ClusterOf(after)
	switch {
	case was.Leaving != is.Leaving, !maps.Equal(was.Labels, is.Labels), lost(was.Taints, is.Taints),
		!sameNamespaces(&was, &is),
		eligible().Ineligible(&was, now) != "" && eligible().Ineligible(&is, now) == "":
		return decisive
	case !maps.Equal(was.Properties, is.Properties):
		return measured
	}
	return irrelevant
}

// lost reports whether a taint is gone.
func lost(was, is []framework.Taint) bool {
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
	// size is how many members there are, more or less.
	size func() int
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

var _ handler.EventHandler = (*memberHandler)(nil)

// Create implements handler.EventHandler.
func (h *memberHandler) Create(ctx context.Context, _ event.CreateEvent, q queue) { h.all(ctx, q) }

// Delete implements handler.EventHandler.
func (h *memberHandler) Delete(ctx context.Context, _ event.DeleteEvent, q queue) { h.all(ctx, q) }

// Generic implements handler.EventHandler.
func (h *memberHandler) Generic(context.Context, event.GenericEvent, queue) {}

// Update implements handler.EventHandler.
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
			q.Add(request) // It would not have been picked until now.
		}
	})
}

// noticedSilence is the pause between two heartbeats from which on placements
// are asked whether it was too long for them.
const noticedSilence = time.Second

// silence is the pause between the last two heartbeats of a member that was not heard of
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

// measures reports whether a policy asks for properties.
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

// policyChanges lets everything about a policy snapshot pass but its status.
func policyChanges() predicate.Predicate {
	return predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// bindingDeletions lets pass that a binding begins to go, or is gone.
func bindingDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
