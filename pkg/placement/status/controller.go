// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "placement.status"

// Reconciler writes the statuses of placements.
type Reconciler struct {
	// Client reads through the cache.
	Client    client.Client
	Snapshots snapshot.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	// Settle is how long changes of bindings are gathered before a status is computed, because a
	// rollout changes many at a time.
	Settle time.Duration
	// Workers is the number of placements that are reconciled at a time.
	Workers int
	// Arrival measures how long changes take.
	Arrival *Arrival

	spacing     spacing
	standstills standstills
}

// SetupWithManager registers the controller. It reconciles a placement when its spec, its condition
// Scheduled, one of its snapshots or one of its bindings changes, when a member loses or resumes its
// heartbeat, or reports other objects that it retains, when an override names it, and when somebody else changes the
// copy of its status.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, scheduledChanges()))
	relabelled := builder.WithPredicates(predicate.LabelChangedPredicate{})
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, changed).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, changed).
		Watches(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, objects.EnqueuePlacement()).
		Watches(&placementv1beta1.SchedulingPolicySnapshot{}, objects.EnqueuePlacement()).
		WatchesMetadata(&placementv1beta1.ClusterResourceSnapshot{}, objects.EnqueuePlacement(), relabelled).
		WatchesMetadata(&placementv1beta1.ResourceSnapshot{}, objects.EnqueuePlacement(), relabelled).
		Watches(&placementv1beta1.ClusterResourceBinding{}, objects.EnqueuePlacementAfter(r.Settle)).
		Watches(&placementv1beta1.ResourceBinding{}, objects.EnqueuePlacementAfter(r.Settle)).
		Watches(&clusterv1beta1.InternalMemberCluster{}, enqueue.After(r.Settle, leftoverPlacements), builder.WithPredicates(retainedChanges())).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.placedOn), builder.WithPredicates(objects.HeartbeatChanged())).
		Watches(&placementv1beta1.ClusterResourcePlacementStatus{}, handler.EnqueueRequestsFromMapFunc(copied)).
		Watches(&placementv1beta1.ResourceOverride{}, handler.EnqueueRequestsFromMapFunc(namedPlacement), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r))
}

// scheduledChanges passes changes of the condition Scheduled by others.
func scheduledChanges() predicate.Predicate {
	reason := func(object client.Object) string {
		placement, ok := object.(placementv1beta1.PlacementObject)
		if !ok {
			return ""
		}
		c := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled))
		if c == nil {
			return ""
		}
		return c.Reason
	}
	return enqueue.Updates(func(before, after client.Object) bool { return reason(before) != reason(after) })
}

// Reconcile writes the status of one placement.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement, err := objects.Placement(ctx, r.Client, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.spacing.forget(req.NamespacedName)
		r.Arrival.forget(req.NamespacedName)
		r.standstills.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if placement.GetDeletionTimestamp() != nil {
		return r.reportDeleted(ctx, placement)
	}
	if going, err := objects.NamespaceGoing(ctx, r.Client, req.Namespace); going || err != nil {
		return ctrl.Result{}, err
	}
	if wait := r.spacing.compute(req.NamespacedName, r.Clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	observed, err := r.observe(ctx, req.NamespacedName, placement)
	if err != nil || observed == nil {
		return ctrl.Result{}, err
	}
	status := Compute(observed)
	r.spacing.computes(req.NamespacedName, len(status.PlacementStatuses), r.Clock.Now())
	if wait := r.spacing.write(req.NamespacedName, importanceOf(placement, status), r.Clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err = r.write(ctx, placement, status)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Arrival.observe(placement, observed.Changed, r.Clock.Now())
	reported, again := r.standstills.check(req.NamespacedName, placement, r.Clock.Now())
	if reported != nil {
		r.Recorder.Eventf(placement, nil, reported.kind, reported.reason, "Place", "%s", reported.message)
	}
	if checks := observed.Departures.again; checks > 0 && (again == 0 || checks < again) {
		again = checks
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// observe reads the input of the status; nil while it is incomplete. Missing objects trigger the
// placement again.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (*Observed, error) {
	if invalid(placement) {
		return nil, nil
	}
	policies, err := objects.PolicySnapshots(ctx, r.Client, key)
	if err != nil {
		return nil, err
	}
	policy := objects.LatestPolicySnapshot(placement, policies)
	if policy == nil || snapshot.ObservedGeneration(policy) != placement.GetGeneration() {
		return nil, nil
	}
	if !Decided(placement, policy) && len(placement.GetStatus().Conditions) > 0 {
		return nil, nil
	}
	o := &Observed{Placement: placement, Policy: policy}
	if o.Bindings, err = objects.Bindings(ctx, r.Client, key); err != nil {
		return nil, err
	}
	if o.Leftovers, err = r.leftovers(ctx, key); err != nil {
		return nil, err
	}
	if o.Unreachable, err = objects.Unreachable(ctx, r.Client); err != nil {
		return nil, err
	}
	if o.Departures, err = r.departuresOf(ctx, o.Bindings); err != nil {
		return nil, err
	}
	if o.Misdirected, err = r.misdirected(ctx, key); err != nil {
		return nil, err
	}
	if ready, err := r.observeResources(ctx, key, o); err != nil || !ready {
		return nil, err
	}
	return o, nil
}

// placedOn queues the placements whose status has an entry of the member.
func (r *Reconciler) placedOn(ctx context.Context, member client.Object) []reconcile.Request {
	var requests []reconcile.Request
	objects.EachPlacement(ctx, r.Client, func(placement placementv1beta1.PlacementObject) {
		if slices.ContainsFunc(placement.GetStatus().PlacementStatuses, func(m placementv1beta1.PerClusterPlacementStatus) bool { return m.ClusterName == member.GetName() }) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placement)})
		}
	})
	return requests
}

// invalid reports whether the selectors of the current generation are known to be invalid.
func invalid(placement placementv1beta1.PlacementObject) bool {
	c := meta.FindStatusCondition(placement.GetStatus().Conditions, placement.ConditionType(placementv1beta1.ConditionScheduled))
	return c != nil && c.Reason == placementv1beta1.ReasonInvalidResourceSelectors && c.ObservedGeneration == placement.GetGeneration()
}

func (r *Reconciler) observeResources(ctx context.Context, key types.NamespacedName, o *Observed) (ready bool, err error) {
	snapshots, err := objects.ResourceSnapshots(ctx, r.Client, key)
	if err != nil {
		return false, err
	}
	o.IndexOf = func(name string) string {
		for _, s := range snapshots {
			if s.Name == name {
				return s.Labels[placementv1beta1.ResourceIndexLabel]
			}
		}
		return ""
	}
	var name string
	if o.Placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		if name = commonSnapshot(o.Policy, o.Bindings); o.IndexOf(name) == "" {
			return true, nil
		}
	} else if latest := objects.LatestResourceSnapshot(o.Placement, snapshots); latest != nil {
		name, o.Changed = latest.Name, o.Policy.GetCreationTimestamp().Time
		if made := latest.CreationTimestamp.Time; made.After(o.Changed) {
			o.Changed = made
		}
	} else {
		return false, nil
	}
	group, err := r.Snapshots.Group(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading what placement %q selects: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	o.Snapshot, o.Index, o.Resources = name, group.Index, group.Resources
	return true, nil
}

// copied queues the placement of a status copy.
func copied(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetName()}}}
}

func (r *Reconciler) write(ctx context.Context, placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) error {
	if !isUnchanged(placement.GetStatus(), status) {
		trim(placement, status)
	}
	copyErr := r.copyToNamespace(ctx, placement, status)
	before := placement.DeepCopyObject().(placementv1beta1.PlacementObject)
	*placement.GetStatus() = *status
	if equality.Semantic.DeepEqual(before.GetStatus(), status) {
		return copyErr
	}
	r.spacing.writes(client.ObjectKeyFromObject(placement), r.Clock.Now())
	// Update instead of patch: the whole object is at hand, and the API server would merge and prune a patch first.
	if err := r.Client.Status().Update(ctx, placement); err != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
	}
	for _, e := range eventsOf(before, placement) {
		r.Recorder.Eventf(placement, nil, e.kind, e.reason, "Place", "%s", e.message)
	}
	return copyErr
}
