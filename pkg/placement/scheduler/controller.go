// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"golang.org/x/sync/errgroup"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "placement.scheduler"

// writers is the number of bindings of one placement that are written at a time.
const writers = 16

// Rollout decides which new bindings of a placement it starts at once.
type Rollout interface {
	// Begin binds those of fresh, which are not stored yet, that need not wait. The caller must store
	// them before the rest of fresh.
	Begin(ctx context.Context, placement placementv1beta1.PlacementObject, bindings, fresh []placementv1beta1.BindingObject) error
}

// Reconciler schedules placements.
type Reconciler struct {
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live    client.Reader
	Profile framework.Profile
	// Rollout starts new bindings; nil if another component rolls out.
	Rollout Rollout
	// Tenancy limits ResourcePlacements; nil means no limit.
	Tenancy Tenancy
	// Recorder is for events of placements.
	Recorder events.EventRecorder
	// Marks are the labels and taints of members' ManagedClusters; nil means none.
	Marks Marks
	Clock clock.PassiveClock
	// Workers is the number of placements that are scheduled at a time.
	Workers int

	members memberCache
}

// SetupWithManager registers the controller. It reconciles a placement when it is being deleted, when
// its policy snapshot or its failover terms change, when a binding is deleted, and when a member
// changes so that it could be picked or has to be dropped.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))
	members := &memberHandler{reader: r.Client, now: r.Clock, size: r.members.size}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, changed).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, changed).
		Watches(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, objects.EnqueuePlacement(), builder.WithPredicates(policyChanges())).
		Watches(&placementv1beta1.SchedulingPolicySnapshot{}, objects.EnqueuePlacement(), builder.WithPredicates(policyChanges())).
		Watches(&placementv1beta1.ClusterResourceBinding{}, objects.EnqueuePlacement(), builder.WithPredicates(bindingDeletions())).
		Watches(&placementv1beta1.ResourceBinding{}, objects.EnqueuePlacement(), builder.WithPredicates(bindingDeletions())).
		Watches(&clusterv1beta1.MemberCluster{}, members).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	return reconcileutil.SetupError(Name, r.watchMarks(r.watchTenancy(b), members).Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

// Reconcile schedules one placement, or deletes its bindings if it is being deleted.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement, err := objects.Placement(ctx, r.Client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if placement.GetDeletionTimestamp() != nil {
		return objects.Again(ctrl.Result{}, r.finalize(ctx, req.NamespacedName, placement))
	}
	recheck, err := r.scheduleUnlessGoing(ctx, req.NamespacedName, placement)
	return objects.Again(ctrl.Result{RequeueAfter: recheck}, err)
}

// scheduleUnlessGoing skips a placement whose namespace is being deleted, because its own deletion
// follows.
func (r *Reconciler) scheduleUnlessGoing(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (recheck time.Duration, err error) {
	if going, err := objects.NamespaceGoing(ctx, r.Client, key.Namespace); going || err != nil {
		return 0, err
	}
	return r.schedule(ctx, key, placement)
}

// schedule returns the delay after which a suspended removal is checked again, or 0 if there is none.
func (r *Reconciler) schedule(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (recheck time.Duration, err error) {
	snapshots, err := objects.PolicySnapshots(ctx, r.Client, key)
	if err != nil {
		return 0, err
	}
	policySnapshot := objects.LatestPolicySnapshot(placement, snapshots)
	if policySnapshot == nil {
		return 0, nil // The missing object triggers the placement again.
	}
	if err := reconcileutil.AddFinalizer(ctx, r.Client, placement, placementv1beta1.SchedulerCleanupFinalizer, "adding the scheduler's finalizer to placement %q", placement.GetName()); err != nil {
		return 0, err
	}
	bindings, err := objects.Bindings(ctx, r.Client, key)
	if err != nil {
		return 0, err
	}
	if err := r.release(ctx, bindings); err != nil {
		return 0, err
	}
	generation := snapshot.ObservedGeneration(policySnapshot)
	decision, why, suspended, err := r.decide(ctx, placement, policySnapshot, bindings)
	if refused := refusal.Of(err); refused != nil {
		return 0, r.writeStatus(ctx, policySnapshot, func() { setUnserved(policySnapshot, generation, refused) })
	}
	if err != nil {
		return 0, err
	}
	if suspended != nil {
		recheck = suspensionRecheck
	}
	if err := r.carryOut(ctx, placement, policySnapshot.GetName(), bindings, &decision); err != nil {
		return 0, err
	}
	if err := r.writeStatus(ctx, policySnapshot, func() { setStatus(policySnapshot, generation, &decision, why) }); err != nil {
		return 0, err
	}
	return recheck, r.reportSuspension(ctx, placement, suspended)
}

// decide makes the decision. why is an addition to its message: the diagnosis of an unfulfilled PickN
// policy, and the limits of the namespace. suspended is the condition about a suspended removal.
func (r *Reconciler) decide(ctx context.Context, placement placementv1beta1.PlacementObject, policySnapshot placementv1beta1.PolicySnapshotObject, bindings []placementv1beta1.BindingObject) (decision framework.Decision, why string, suspended *metav1.Condition, err error) {
	policy, err := policyOf(policySnapshot)
	if err != nil {
		return framework.Decision{}, "", nil, err
	}
	AddTerms(policy, placement)
	clusters, err := r.members.clusters(ctx, r.Client, r.Marks)
	if err != nil {
		return framework.Decision{}, "", nil, err
	}
	fleet := &framework.Fleet{Now: r.Clock.Now(), Clusters: clusters}
	limit, err := r.confine(ctx, policy, fleet)
	if err != nil {
		return framework.Decision{}, "", nil, err
	}
	decision, err = r.Profile.Decide(policy, fleet, holdingsOf(placement, bindings, policySnapshot.GetName()))
	if err != nil {
		return framework.Decision{}, "", nil, fmt.Errorf("scheduling by policy snapshot %q: %w", policySnapshot.GetName(), err)
	}
	if !decision.Fulfilled && policy.Kind == framework.PickN {
		why = ": " + r.Profile.Diagnose(policy, fleet, &decision).String()
	}
	if limit != "" {
		explainOutside(&decision, policy.Namespace)
		why += "; " + limit
		if suspended, err = r.suspendRemoval(ctx, placement, policySnapshot, fleet, bindings, &decision); err != nil {
			return framework.Decision{}, "", nil, err
		}
	}
	if suspended == nil {
		suspended = suspendUnfit(placement, policy, fleet, bindings, &decision)
	}
	if suspended != nil {
		why += "; " + suspended.Message
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Decided", "selected", len(decision.Selected), "members", len(clusters),
		"added", len(decision.Add), "adopted", len(decision.Adopt), "dropped", len(decision.Drop), "why", why)
	return decision, why, suspended, nil
}

// carryOut writes the bindings of the decision.
func (r *Reconciler) carryOut(ctx context.Context, placement placementv1beta1.PlacementObject, policySnapshot string, bindings []placementv1beta1.BindingObject, decision *framework.Decision) error {
	current := make(map[string]placementv1beta1.BindingObject, len(bindings))
	for _, b := range bindings {
		if b.GetDeletionTimestamp() == nil {
			current[b.GetSpec().TargetCluster] = b
		}
	}
	choices := make(map[string]framework.Choice, len(decision.Selected))
	for _, choice := range decision.Selected {
		choices[choice.Cluster] = choice
	}
	var group errgroup.Group // A conflict must not stop the other writes.
	group.SetLimit(writers)
	for _, member := range decision.Adopt {
		group.Go(func() error {
			return r.change(ctx, current[member], func(b placementv1beta1.BindingObject) { adopt(b, policySnapshot, choices[member]) })
		})
	}
	for _, member := range decision.Drop {
		group.Go(func() error { return r.change(ctx, current[member], drop) })
	}
	err := group.Wait()
	fresh := make([]placementv1beta1.BindingObject, 0, len(decision.Add))
	for _, member := range decision.Add {
		fresh = append(fresh, desiredBinding(placement, policySnapshot, choices[member]))
	}
	if err == nil && r.Rollout != nil {
		err = r.Rollout.Begin(ctx, placement, bindings, fresh) // The rollout starts the others later.
	}
	return errors.Join(err, r.createAll(ctx, fresh))
}

// createAll creates bindings, the started ones first: the rollout counts them as soon as it sees one of
// the others.
func (r *Reconciler) createAll(ctx context.Context, fresh []placementv1beta1.BindingObject) error {
	var failures []error
	for _, state := range []placementv1beta1.BindingState{placementv1beta1.BindingBound, placementv1beta1.BindingScheduled} {
		var group errgroup.Group
		group.SetLimit(writers)
		for _, b := range fresh {
			if b.GetSpec().State == state {
				group.Go(func() error { return r.create(ctx, b) })
			}
		}
		failures = append(failures, group.Wait())
	}
	return errors.Join(failures...)
}

func (r *Reconciler) create(ctx context.Context, b placementv1beta1.BindingObject) error {
	if err := r.Client.Create(ctx, b); err != nil {
		return fmt.Errorf("creating binding %q: %w", b.GetName(), err)
	}
	return nil
}

// change updates a binding. It uses an update, because the whole object is at hand and the API server
// would merge and prune a patch first.
func (r *Reconciler) change(ctx context.Context, b placementv1beta1.BindingObject, change func(placementv1beta1.BindingObject)) error {
	change(b)
	if err := r.Client.Update(ctx, b); err != nil {
		return fmt.Errorf("changing binding %q: %w", b.GetName(), err)
	}
	return nil
}

// release removes the finalizer of bindings that are being deleted: they have been counted.
func (r *Reconciler) release(ctx context.Context, bindings []placementv1beta1.BindingObject) error {
	for _, b := range bindings {
		if b.GetDeletionTimestamp() == nil || !controllerutil.ContainsFinalizer(b, placementv1beta1.SchedulerBindingFinalizer) {
			continue
		}
		if err := r.removeFinalizer(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, b placementv1beta1.BindingObject) error {
	err := r.change(ctx, b, func(b placementv1beta1.BindingObject) {
		controllerutil.RemoveFinalizer(b, placementv1beta1.SchedulerBindingFinalizer)
	})
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) writeStatus(ctx context.Context, s placementv1beta1.PolicySnapshotObject, change func()) error {
	before := s.DeepCopyObject().(placementv1beta1.PolicySnapshotObject)
	change()
	if equality.Semantic.DeepEqual(before.GetStatus(), s.GetStatus()) {
		return nil
	}
	// Update instead of patch: the whole object is at hand, and the API server would merge and prune a patch first.
	if err := r.Client.Status().Update(ctx, s); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of policy snapshot %q: %w", s.GetName(), err)
	}
	return nil
}

// finalize deletes all bindings of a placement that is being deleted, and removes the finalizer. The
// bindings' own finalizer keeps them until their Works are deleted.
func (r *Reconciler) finalize(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) error {
	if !controllerutil.ContainsFinalizer(placement, placementv1beta1.SchedulerCleanupFinalizer) {
		return nil
	}
	bindings, err := objects.LiveBindings(ctx, r.Live, key)
	if err != nil {
		return err
	}
	cause := placementv1beta1.DeletionPlacementDeleted
	if going, err := objects.DefinitionGoing(ctx, r.Live, key.Namespace); err != nil {
		return err
	} else if going {
		cause = placementv1beta1.DeletionNone
		ctrl.LoggerFrom(ctx).Info("The CustomResourceDefinition of a placement is being deleted; members keep its resources")
	}
	var group errgroup.Group
	group.SetLimit(writers)
	abandon := abandons(placement.GetSpec())
	for _, b := range bindings {
		group.Go(func() error { return r.releaseBinding(ctx, b, cause, abandon) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, placement, placementv1beta1.SchedulerCleanupFinalizer, "removing the scheduler's finalizer of placement %q", klog.KRef(key.Namespace, key.Name))
}

// abandons reports whether a deleted placement keeps its placed resources on members.
func abandons(spec *placementv1beta1.PlacementSpec) bool {
	strategy := spec.Strategy.DeleteStrategy
	return strategy != nil && strategy.PropagationPolicy == placementv1beta1.AbandonPlaced
}

// releaseBinding deletes a binding of a deleted placement. It first records in the binding the cause, and
// whether placed resources stay, because the placement may be deleted before the dispatcher reads it.
func (r *Reconciler) releaseBinding(ctx context.Context, b placementv1beta1.BindingObject, cause string, abandon bool) error {
	annotations := b.GetAnnotations()
	abandon = abandon && b.GetDeletionTimestamp() == nil && annotations[placementv1beta1.DeletePolicyAnnotation] == ""
	if abandon || annotations[placementv1beta1.DeletionCauseAnnotation] != cause || controllerutil.ContainsFinalizer(b, placementv1beta1.SchedulerBindingFinalizer) {
		err := r.change(ctx, b, func(b placementv1beta1.BindingObject) {
			if abandon {
				reconcileutil.SetAnnotation(b, placementv1beta1.DeletePolicyAnnotation, placementv1beta1.DeletePolicyAbandon)
			}
			reconcileutil.SetAnnotation(b, placementv1beta1.DeletionCauseAnnotation, cause)
			controllerutil.RemoveFinalizer(b, placementv1beta1.SchedulerBindingFinalizer)
		})
		if err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if b.GetDeletionTimestamp() != nil {
		return nil
	}
	if err := r.Client.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting binding %q: %w", b.GetName(), err)
	}
	return nil
}
