// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// Name is the controller's name.
const Name = "placement.failover"

// The reasons of events on placements.
const (
	eventFailover        = "PlacementFailover"
	eventInvalidFailover = "PlacementFailoverInvalid"
	eventSuspended       = "PlacementFailoverSuspended"
)

// Label is on evictions that failover creates; its value is the placement's name.
const Label = "fleetgate.io/failover-of"

const (
	// retry is the delay after which a blocked eviction is requested again.
	retry = 15 * time.Second
	// record is how long an executed eviction is kept.
	record = time.Hour
)

// Reconciler requests evictions for placements with failover terms.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Scheduler decides whether another member can take over.
	Scheduler Scheduler
	// Workers is the number of placements that are reconciled at a time.
	Workers int
	// Silence is how long the hub waits for a heartbeat before a member counts as disconnected.
	Silence time.Duration

	watch watch
}

// Scheduler finds replacements for a placement's members; *scheduler.Reconciler implements it.
type Scheduler interface {
	// TakeOver returns why no other member can replace one of a placement's members, or "".
	TakeOver(ctx context.Context, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, member string) (why string, err error)
}

// SetupWithManager registers the controller. It reconciles a placement when its annotations, its
// bindings or the taints of a member change, when a member loses its heartbeat, and when an eviction
// may be due.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, builder.WithPredicates(
			predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&placementv1beta1.ClusterResourceBinding{}, objects.EnqueuePlacement(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1beta1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.withTerms), builder.WithPredicates(reasonsToLeave())).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

// reasonsToLeave passes changed taints and lost heartbeats.
func reasonsToLeave() predicate.Predicate {
	// When a member is created, its placements are reconciled anyway.
	return enqueue.OnUpdate(func(before, after *clusterv1beta1.MemberCluster) bool {
		return !slices.Equal(before.Spec.Taints, after.Spec.Taints) || before.IsJoined() && !after.IsJoined()
	})
}

func (r *Reconciler) withTerms(ctx context.Context, _ client.Object) []reconcile.Request {
	return enqueue.Those(ctx, r.Client, &placementv1beta1.ClusterResourcePlacementList{}, func(placement *placementv1beta1.ClusterResourcePlacement) bool {
		terms, _ := TermsOf(placement.Annotations)
		return !terms.Never()
	})
}

// Reconcile requests the evictions of one placement that are due, and returns when the next are.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement := &placementv1beta1.ClusterResourcePlacement{}
	if found, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, placement, "reading placement %q", req.Name); !found {
		return ctrl.Result{}, err
	}
	terms, fault := TermsOf(placement.Annotations)
	if fault != nil {
		r.Recorder.Eventf(placement, nil, corev1.EventTypeWarning, eventInvalidFailover, "Failover", "Ignored: %v", fault)
	}
	policy := placement.Spec.Policy
	if terms.Never() || placement.DeletionTimestamp != nil || policy != nil && policy.PlacementType == placementv1beta1.PickFixed {
		return ctrl.Result{}, r.suspend(ctx, placement, nil)
	}
	again, err := r.move(ctx, placement, terms)
	return objects.Again(ctrl.Result{RequeueAfter: again}, err)
}

// due is a binding that has to leave its member.
type due struct {
	binding placementv1beta1.BindingObject
	reason  string
	// ordered is true if a user requested it with a taint.
	ordered bool
}

// move requests the evictions that are due, and returns when to reconcile again.
func (r *Reconciler) move(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, terms Terms) (again time.Duration, err error) {
	bindings, err := objects.Bindings(ctx, r.Client, client.ObjectKeyFromObject(placement))
	if err != nil {
		return 0, err
	}
	if err := r.forget(ctx, placement, bindings); err != nil {
		return 0, err
	}
	var list clusterv1beta1.MemberClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing members: %w", err)
	}
	census := censusOf(list.Items)
	leaving, again := dueOf(bindings, list.Items, terms, r.Silence, r.watch.see(census, r.Clock.Now()), r.Clock.Now())
	var suspended *metav1.Condition
	var wait time.Duration
	if len(leaving) > 0 {
		if suspended, wait, err = r.evictOne(ctx, placement, bindings, leaving, census); err != nil {
			return 0, err
		}
	}
	if wait > 0 && (again == 0 || wait < again) {
		again = wait
	}
	return again, r.suspend(ctx, placement, suspended)
}

// dueOf are the bindings that have to leave their members, and when further ones may have to. Missing
// heartbeats before heard do not count.
func dueOf(bindings []placementv1beta1.BindingObject, members []clusterv1beta1.MemberCluster, terms Terms, silence time.Duration, heard, now time.Time) (leaving []due, again time.Duration) {
	byName := make(map[string]*clusterv1beta1.MemberCluster, len(members))
	for i := range members {
		byName[members[i].Name] = &members[i]
	}
	for _, b := range bindings {
		member := byName[b.GetSpec().TargetCluster] // The scheduler drops bindings to members that left.
		if member == nil || b.GetDeletionTimestamp() != nil || b.GetSpec().State != placementv1beta1.BindingBound {
			continue
		}
		reason, wait := terms.Met(member, heard, awaitedSince(member, silence), now)
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
		if reason != "" {
			leaving = append(leaving, due{binding: b, reason: reason, ordered: terms.ordered(member)})
		}
	}
	return leaving, again
}

// awaitedSince is since when the hub has waited for a heartbeat of a disconnected member. That is later
// than the last heartbeat if the hub was down in between.
func awaitedSince(member *clusterv1beta1.MemberCluster, silence time.Duration) time.Time {
	joined := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionUnknown {
		return time.Time{}
	}
	return joined.LastTransitionTime.Add(-max(silence, 2*time.Duration(member.Spec.HeartbeatPeriodSeconds)*time.Second))
}

// evictOne requests one of the due evictions. The effect of the next one is known only after the
// placement has its new member. It returns a condition if nothing is evicted for a lasting reason, and
// when to reconcile again.
func (r *Reconciler) evictOne(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, bindings []placementv1beta1.BindingObject, leaving []due, census census) (*metav1.Condition, time.Duration, error) {
	var suspended *metav1.Condition
	for _, d := range leaving {
		if !d.ordered && census.disrupted() {
			suspended = &metav1.Condition{Reason: placementv1beta1.ReasonMostMembersUnreachable, Message: census.why()}
			continue
		}
		if !d.ordered || !picksAll(placement) {
			why, err := r.Scheduler.TakeOver(ctx, placement, bindings, d.binding.GetSpec().TargetCluster)
			if err != nil {
				return nil, 0, err
			}
			if why != "" {
				suspended = &metav1.Condition{Reason: placementv1beta1.ReasonNoMemberToTakeOver, Message: fmt.Sprintf(
					"The placement stays on member %q though %s: no other member can take over (%s)", d.binding.GetSpec().TargetCluster, d.reason, why)}
				continue
			}
		}
		wait, err := r.evict(ctx, placement, d.binding, d.reason)
		return nil, wait, err
	}
	return suspended, retry, nil
}

// picksAll reports whether the placement is on all eligible members, so that none can replace another.
func picksAll(placement *placementv1beta1.ClusterResourcePlacement) bool {
	policy := placement.Spec.Policy
	return policy == nil || policy.PlacementType == "" || policy.PlacementType == placementv1beta1.PickAll
}

// suspend reports on the placement why a due eviction is suspended; nil removes the condition.
func (r *Reconciler) suspend(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, c *metav1.Condition) error {
	before := placement.DeepCopy()
	if c == nil {
		if !meta.RemoveStatusCondition(&placement.Status.Conditions, placementv1beta1.ConditionFailoverSuspended) {
			return nil
		}
	} else {
		c.Type, c.Status, c.ObservedGeneration = placementv1beta1.ConditionFailoverSuspended, metav1.ConditionTrue, placement.Generation
		if !meta.SetStatusCondition(&placement.Status.Conditions, *c) {
			return nil
		}
	}
	if err := r.Client.Status().Patch(ctx, placement, reconcileutil.PatchFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.Name, err)
	}
	if c != nil {
		r.Recorder.Eventf(placement, nil, corev1.EventTypeWarning, eventSuspended, "Failover", "%s", c.Message)
	}
	return nil
}

// evict requests the eviction of a binding, and returns when to check it again.
func (r *Reconciler) evict(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, b placementv1beta1.BindingObject, reason string) (time.Duration, error) {
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{}
	name := evictionName(placement.Name, b.GetSpec().TargetCluster, b.GetUID())
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, eviction)
	switch {
	case apierrors.IsNotFound(err):
		if wait := r.watch.reserve(r.Clock.Now()); wait > 0 {
			return wait, nil
		}
		return retry, r.create(ctx, placement, b, name, reason)
	case err != nil:
		return 0, fmt.Errorf("reading eviction %q: %w", name, err)
	case len(eviction.Status.Conditions) == 0 || meta.IsStatusConditionTrue(eviction.Status.Conditions, placementv1beta1.ConditionEvictionExecuted):
		return retry, nil
	}
	// A blocked eviction is final: only a new one helps.
	if err := r.Client.Delete(ctx, eviction); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting eviction %q: %w", name, err)
	}
	return retry, nil
}

func (r *Reconciler) create(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, b placementv1beta1.BindingObject, name, reason string) error {
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: placement.Name}},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement.Name, ClusterName: b.GetSpec().TargetCluster},
	}
	if err := controllerutil.SetControllerReference(placement, eviction, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning eviction %q: %w", name, err)
	}
	if err := r.Client.Create(ctx, eviction); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("creating eviction %q: %w", name, err)
	}
	r.Recorder.Eventf(placement, nil, corev1.EventTypeNormal, eventFailover, "Evict", "Leaving member %s: %s", b.GetSpec().TargetCluster, reason)
	return nil
}

// forget deletes old evictions of deleted bindings.
func (r *Reconciler) forget(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, bindings []placementv1beta1.BindingObject) error {
	var list placementv1beta1.ClusterResourcePlacementEvictionList
	if err := r.Client.List(ctx, &list, client.MatchingLabels{Label: placement.Name}); err != nil {
		return fmt.Errorf("listing evictions of placement %q: %w", placement.Name, err)
	}
	live := map[string]bool{}
	for _, b := range bindings {
		live[evictionName(placement.Name, b.GetSpec().TargetCluster, b.GetUID())] = true
	}
	for i := range list.Items {
		eviction := &list.Items[i]
		if live[eviction.Name] || r.Clock.Since(eviction.CreationTimestamp.Time) < record {
			continue
		}
		if err := r.Client.Delete(ctx, eviction); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting eviction %q: %w", eviction.Name, err)
		}
	}
	return nil
}

// evictionName is the only possible name of a binding's eviction, so that two reconciliations never
// request two.
func evictionName(placement, member string, binding types.UID) string {
	return "failover-" + placementv1beta1.BindingName(placement, member, hash.Of(binding))
}
