// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/failover"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "placement.rollout"

// writers is the number of bindings of one placement that are written at a time.
const writers = 16

// Reconciler rolls out placements.
type Reconciler struct {
	// Client reads through the cache, which must know the client's previous writes: otherwise a binding
	// that still looks ready would count as ready.
	Client client.Client
	Clock  clock.PassiveClock
	// Snapshots reads selected resources, to find their overrides.
	Snapshots snapshot.Reader
	// Workers is the number of placements that are reconciled at a time.
	Workers int
}

// SetupWithManager registers the controller. It reconciles a placement when its strategy changes, when
// it gets a resource snapshot, and when one of its bindings changes in a way that Plan uses. It
// reconciles all placements when an override or the labels of a member change.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	respecified := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, objects.PauseChanged()))
	relabelled := builder.WithPredicates(predicate.LabelChangedPredicate{})
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, respecified).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, respecified).
		WatchesMetadata(&placementv1beta1.ClusterResourceSnapshot{}, objects.EnqueuePlacement(), relabelled).
		WatchesMetadata(&placementv1beta1.ResourceSnapshot{}, objects.EnqueuePlacement(), relabelled).
		Watches(&placementv1beta1.ClusterResourceBinding{}, objects.EnqueuePlacement(), builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.ResourceBinding{}, objects.EnqueuePlacement(), builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.ClusterResourceOverrideSnapshot{}, r.everyPlacement(), relabelled).
		Watches(&placementv1beta1.ResourceOverrideSnapshot{}, r.everyPlacement(), relabelled).
		Watches(&clusterv1beta1.MemberCluster{}, r.everyPlacement(), builder.WithPredicates(predicate.Or(objects.Relabelled(), objects.PauseChanged()))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r))
}

func bindingChanges() predicate.Predicate {
	return enqueue.Updates(func(before, after placementv1beta1.BindingObject) bool {
		return before.GetGeneration() != after.GetGeneration() ||
			!equality.Semantic.DeepEqual(before.GetStatus().Conditions, after.GetStatus().Conditions)
	})
}

// Reconcile binds the bindings of one placement to the latest snapshots, as its strategy allows.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement, err := objects.Placement(ctx, r.Client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if placement.GetDeletionTimestamp() != nil || placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		return ctrl.Result{}, nil
	}
	steps, err := r.rollOut(ctx, req.NamespacedName, placement)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("rolling out placement %q: %w", klog.KRef(req.Namespace, req.Name), err)
	}
	return ctrl.Result{RequeueAfter: steps.Again}, nil
}

type bindingSteps = Steps[placementv1beta1.BindingObject]

// rollOut takes the possible steps.
func (r *Reconciler) rollOut(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (bindingSteps, error) {
	bindings, err := objects.Bindings(ctx, r.Client, key)
	if err != nil {
		return bindingSteps{}, err
	}
	now, err := r.read(ctx, key, placement, bindings)
	if now == nil || err != nil {
		return bindingSteps{}, err // A snapshot triggers the placement.
	}
	if pushed, err := r.pushStrategy(ctx, bindings, now.strategy, now.pauses); pushed || err != nil {
		return bindingSteps{}, err // The written bindings trigger the placement again.
	}
	steps, err := now.plan(bindings)
	if err != nil {
		return bindingSteps{}, err
	}
	return steps, r.take(ctx, steps, now)
}

// rolloutInput is the input of a placement's rollout at one time.
type rolloutInput struct {
	spec     *placementv1beta1.PlacementSpec
	goal     goal
	strategy *placementv1beta1.ApplyStrategy
	pauses   pauses
	// moves is Pace.Moves.
	moves bool
	at    time.Time
}

// read reads the input for the rollout of a placement with these bindings; nil while there is no
// snapshot to roll out.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject) (*rolloutInput, error) {
	snapshots, err := objects.ResourceSnapshots(ctx, r.Client, key)
	if err != nil {
		return nil, err
	}
	latest := objects.LatestResourceSnapshot(placement, snapshots)
	if latest == nil {
		return nil, nil
	}
	terms, _ := failover.TermsOf(placement.GetAnnotations()) // Package failover reports invalid terms.
	now := &rolloutInput{spec: placement.GetSpec(), strategy: ApplyStrategyOf(placement.GetSpec()), moves: !terms.Never(), at: r.Clock.Now()}
	if now.goal, err = r.goal(ctx, key, latest.Name, bindings); err != nil {
		return nil, err
	}
	if now.pauses, err = r.pauses(ctx, placement); err != nil {
		return nil, err
	}
	return now, nil
}

func (s *rolloutInput) plan(bindings []placementv1beta1.BindingObject) (bindingSteps, error) {
	pace, err := PaceOf(s.spec, bindings)
	if err != nil {
		return bindingSteps{}, err
	}
	pace.Moves = s.moves
	return Plan(bindings, s.goal.candidates(s.pauses), pace, s.at), nil
}

// bind binds to the latest snapshot and overrides. It also adds the dispatcher's finalizer, which saves
// that controller a write. The dispatcher's conditions include RolloutStarted, which saves a write
// here.
func (s *rolloutInput) bind(b placementv1beta1.BindingObject) {
	spec := b.GetSpec()
	spec.State = placementv1beta1.BindingBound
	s.goal.write(spec)
	spec.ApplyStrategy = s.strategy.DeepCopy()
	controllerutil.AddFinalizer(b, placementv1beta1.WorkCleanupFinalizer)
}

// pushStrategy copies a changed apply strategy to all bound bindings at once: the pace does not apply
// to it.
func (r *Reconciler) pushStrategy(ctx context.Context, bindings []placementv1beta1.BindingObject, strategy *placementv1beta1.ApplyStrategy, pauses pauses) (pushed bool, err error) {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, b := range bindings {
		if b.GetDeletionTimestamp() != nil || b.GetSpec().State != placementv1beta1.BindingBound ||
			equality.Semantic.DeepEqual(b.GetSpec().ApplyStrategy, strategy) || pauses.has(b) {
			continue
		}
		pushed = true
		group.Go(func() error {
			return r.change(ctx, b, func() { b.GetSpec().ApplyStrategy = strategy.DeepCopy() })
		})
	}
	return pushed, group.Wait()
}

// take carries out the steps.
func (r *Reconciler) take(ctx context.Context, steps bindingSteps, now *rolloutInput) error {
	var group errgroup.Group // A conflict must not stop the other writes.
	group.SetLimit(writers)
	for _, b := range steps.Update {
		group.Go(func() error { return r.change(ctx, b, func() { now.bind(b) }) })
	}
	for _, b := range steps.Remove {
		group.Go(func() error { return r.remove(ctx, b) })
	}
	for _, b := range steps.Settled {
		if c := current(b, placementv1beta1.ConditionRolloutStarted); c != nil && c.Status == metav1.ConditionFalse {
			group.Go(func() error { return r.started(ctx, b) }) // It was to move, and no longer has to.
		}
	}
	for _, b := range steps.Blocked {
		group.Go(func() error { return r.blocked(ctx, b, now.pauses) })
	}
	return group.Wait()
}

func (r *Reconciler) remove(ctx context.Context, b placementv1beta1.BindingObject) error {
	unchanged := client.Preconditions{UID: new(b.GetUID()), ResourceVersion: new(b.GetResourceVersion())}
	if err := r.Client.Delete(ctx, b, unchanged); err != nil {
		return fmt.Errorf("deleting binding %q: %w", b.GetName(), err)
	}
	return nil
}

func (r *Reconciler) started(ctx context.Context, b placementv1beta1.BindingObject) error {
	return r.setCondition(ctx, b, metav1.Condition{
		Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonRolloutStarted,
		Message: placementv1beta1.MessageRolloutStarted,
	})
}

func (r *Reconciler) blocked(ctx context.Context, b placementv1beta1.BindingObject, pauses pauses) error {
	return r.setCondition(ctx, b, metav1.Condition{
		Status: metav1.ConditionFalse, Reason: placementv1beta1.ReasonRolloutNotStartedYet,
		Message: cmp.Or(pauses.reason(b), "The rollout strategy makes the cluster wait until others are available"),
	})
}

func (r *Reconciler) setCondition(ctx context.Context, b placementv1beta1.BindingObject, condition metav1.Condition) error {
	condition.Type, condition.ObservedGeneration = placementv1beta1.ConditionRolloutStarted, b.GetGeneration()
	if !meta.SetStatusCondition(&b.GetStatus().Conditions, condition) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, b); err != nil {
		return fmt.Errorf("writing the status of binding %q: %w", b.GetName(), err)
	}
	return nil
}

// change updates a binding. It uses an update, because the whole object is at hand and the API server
// would merge and prune a patch first.
func (r *Reconciler) change(ctx context.Context, b placementv1beta1.BindingObject, change func()) error {
	change()
	if err := r.Client.Update(ctx, b); err != nil {
		return fmt.Errorf("changing binding %q: %w", b.GetName(), err)
	}
	return nil
}
