// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// EnqueuePlacement queues the placement of an object.
func EnqueuePlacement() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		key, ok := KeyOf(object)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// Relabelled passes only objects whose labels changed.
func Relabelled() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool { return !maps.Equal(before.GetLabels(), after.GetLabels()) })
}

// PauseChanged passes only objects that were paused or resumed.
func PauseChanged() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		return placementv1beta1.Paused(before) != placementv1beta1.Paused(after)
	})
}

// NoHeartbeat says since when an expected member has had no heartbeat, as the end of a sentence; "" if it
// is connected. The time is the hub's.
func NoHeartbeat(member *clusterv1beta1.MemberCluster) string {
	if member == nil {
		return ""
	}
	since, silent := member.SilentSince()
	if !silent {
		return ""
	}
	return fmt.Sprintf("member %q has had no heartbeat since %s: see its condition Joined", member.Name, since.UTC().Format(time.RFC3339))
}

// Unreachable says since when members have had no heartbeat, by member.
func Unreachable(ctx context.Context, cache client.Reader) (map[string]string, error) {
	var list clusterv1beta1.MemberClusterList
	if err := cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	since := map[string]string{}
	for i := range list.Items {
		if silent := NoHeartbeat(&list.Items[i]); silent != "" {
			since[list.Items[i].Name] = silent
		}
	}
	return since, nil
}

// HeartbeatChanged passes only members that lost or resumed their heartbeat.
func HeartbeatChanged() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after *clusterv1beta1.MemberCluster) bool {
		return NoHeartbeat(before) != NoHeartbeat(after)
	})
}

// AuthorCheckChanged passes only placements whose author check changed.
func AuthorCheckChanged() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		const annotation = placementv1beta1.AuthorMayAnnotation
		return before.GetAnnotations()[annotation] != after.GetAnnotations()[annotation]
	})
}

// Confirmed passes only placements for which somebody has confirmed a removal.
func Confirmed() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after client.Object) bool {
		const confirmed = placementv1beta1.ConfirmRemovalAnnotation
		return before.GetAnnotations()[confirmed] != after.GetAnnotations()[confirmed]
	})
}

// RetryDelay is the delay before a reconciler retries after a first conflict: the cache needs a moment to
// get the other write.
const RetryDelay = 10 * time.Millisecond

// Again is a reconciler's result. Conflicts, and writes to a terminating namespace, are routine: they
// are retried and not logged. The reconciler is wrapped in reconcileutil.RetryConflictsAfter.
func Again(result reconcile.Result, err error) (reconcile.Result, error) {
	if RefusedAsGoing(err) {
		return reconcile.Result{RequeueAfter: GoingDelay}, nil
	}
	return reconcileutil.RequeueOnConflict(result, err)
}

// EnqueuePlacementAfter queues the placement after a delay, so that concurrent changes are handled
// together.
func EnqueuePlacementAfter(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(object client.Object, q queue) {
		if key, ok := KeyOf(object); ok {
			q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}
