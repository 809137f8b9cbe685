// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"golang.org/x/sync/errgroup"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

const (
	// Name is the controller's name.
	Name = "placement.updateruns"
	// runsByPlacement is the cache's index of runs by the name of their placement.
	runsByPlacement = "placement"
	// writers is the number of bindings of one run that are written at a time.
	writers = 16
	// bindingSettle is how long changes of a placement's bindings are gathered before its runs are
	// reconciled, because members report one after another and the status of a run grows with them.
	bindingSettle = 200 * time.Millisecond
)

// Taker creates a resource snapshot of a placement's current selection; *snapshot.Reconciler implements
// it.
type Taker interface {
	Take(ctx context.Context, placement placementv1beta1.PlacementObject) (*metav1.PartialObjectMetadata, error)
}

// Reconciler carries out update runs.
type Reconciler struct {
	// Client reads through the cache, which must know the client's previous writes.
	Client client.Client
	// Live reads without the cache before a run is initialized and before it fails, and deletes the
	// objects of a run.
	Live      client.Client
	Snapshots snapshot.Reader
	Taker     Taker
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock
	// Workers is the number of runs that are reconciled at a time.
	Workers int
}

// AddIndexes adds the indexes that the controller needs.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []placementv1beta1.UpdateRunObject{newRun(""), newRun("any")} {
		err := indexer.IndexField(ctx, kind, runsByPlacement, func(object client.Object) []string {
			return []string{object.(placementv1beta1.UpdateRunObject).GetSpec().PlacementName}
		})
		if err != nil {
			return fmt.Errorf("indexing %T by placement: %w", kind, err)
		}
	}
	return nil
}

// SetupWithManager registers the controller. It reconciles a run when its spec changes or it is being
// deleted, when its placement, policy snapshot or a binding changes, and when one of its approval
// requests changes. It reconciles all runs when a member is paused or resumed.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	respecified := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	respecifiedOrPaused := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, objects.PauseChanged()))
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterStagedUpdateRun{}, respecified).
		Watches(&placementv1beta1.StagedUpdateRun{}, &handler.EnqueueRequestForObject{}, respecified).
		Watches(&placementv1beta1.ClusterResourcePlacement{}, r.runsOf(client.ObjectKeyFromObject), respecifiedOrPaused).
		Watches(&placementv1beta1.ResourcePlacement{}, r.runsOf(client.ObjectKeyFromObject), respecifiedOrPaused).
		Watches(&clusterv1beta1.MemberCluster{}, r.allRuns(), builder.WithPredicates(objects.PauseChanged())).
		Watches(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, r.runsOf(keyOf)).
		Watches(&placementv1beta1.SchedulingPolicySnapshot{}, r.runsOf(keyOf)).
		Watches(&placementv1beta1.ClusterResourceBinding{}, r.runsAfter(bindingSettle), builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.ResourceBinding{}, r.runsAfter(bindingSettle), builder.WithPredicates(bindingChanges())).
		Watches(&placementv1beta1.ClusterApprovalRequest{}, requester()).
		Watches(&placementv1beta1.ApprovalRequest{}, requester()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

func keyOf(object client.Object) types.NamespacedName {
	key, _ := objects.KeyOf(object)
	return key
}

// runsOf queues the unfinished runs of a placement.
func (r *Reconciler) runsOf(placement func(client.Object) types.NamespacedName) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		return r.unfinishedOf(ctx, placement(changed))
	})
}

func (r *Reconciler) unfinishedOf(ctx context.Context, placement types.NamespacedName) []reconcile.Request {
	return r.unfinished(ctx, newRunList(placement.Namespace), client.MatchingFields{runsByPlacement: placement.Name}, client.InNamespace(placement.Namespace))
}

// runsAfter queues the unfinished runs of a binding's placement after a delay.
func (r *Reconciler) runsAfter(delay time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(ctx context.Context, b client.Object, q queue) {
		for _, run := range r.unfinishedOf(ctx, keyOf(b)) {
			q.AddAfter(run, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}

// bindingChanges drops updates that change nothing that Next uses.
func bindingChanges() predicate.Predicate {
	return enqueue.Updates(func(before, after placementv1beta1.BindingObject) bool {
		return before.GetGeneration() != after.GetGeneration() || started(before) != started(after) || arrived(before) != arrived(after) ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
	})
}

// allRuns queues all unfinished runs.
func (r *Reconciler) allRuns() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return append(r.unfinished(ctx, newRunList("")), r.unfinished(ctx, newRunList("any"))...)
	})
}

func (r *Reconciler) unfinished(ctx context.Context, list client.ObjectList, options ...client.ListOption) []reconcile.Request {
	return enqueue.Those(ctx, r.Client, list, func(run placementv1beta1.UpdateRunObject) bool { return !Over(run) }, options...)
}

// requester queues the run that created an approval request.
func requester() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		a, ok := object.(placementv1beta1.ApprovalRequestObject)
		if !ok {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: a.GetNamespace(), Name: a.GetSpec().ParentStageRollout}}}
	})
}

// Reconcile continues one update run.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	run := newRun(req.Namespace)
	if found, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, run, "reading update run %q", klog.KRef(req.Namespace, req.Name)); !found {
		return ctrl.Result{}, err
	}
	result, err := r.advance(ctx, run)
	if err != nil {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, fmt.Errorf("update run %q: %w", klog.KRef(req.Namespace, req.Name), err))
	}
	return result, nil
}

func (r *Reconciler) advance(ctx context.Context, run placementv1beta1.UpdateRunObject) (ctrl.Result, error) {
	if run.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, r.finalize(ctx, run)
	}
	if err := reconcileutil.AddFinalizer(ctx, r.Client, run, placementv1beta1.UpdateRunFinalizer, "adding the finalizer"); err != nil {
		return ctrl.Result{}, err
	}
	status, state := run.GetStatus(), run.GetSpec().State
	initialized := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionUpdateRunInitialized)
	if initialized == nil || initialized.Status == metav1.ConditionFalse && initialized.ObservedGeneration != run.GetGeneration() {
		if done, err := r.initialize(ctx, run); err != nil || !done {
			return ctrl.Result{}, err
		}
	}
	switch {
	case !meta.IsStatusConditionTrue(status.Conditions, placementv1beta1.ConditionUpdateRunInitialized):
		return ctrl.Result{}, nil
	case Over(run), state != placementv1beta1.UpdateRunRun && state != placementv1beta1.UpdateRunStop:
		after := status.DeepCopy()
		observe(after, run.GetGeneration())
		return ctrl.Result{}, r.write(ctx, run, after)
	}
	return r.step(ctx, run)
}

// initialize computes the stages, and reports whether the run can continue.
func (r *Reconciler) initialize(ctx context.Context, run placementv1beta1.UpdateRunObject) (done bool, err error) {
	status, no, err := r.plan(ctx, run)
	if err != nil {
		return false, err
	}
	log := ctrl.LoggerFrom(ctx)
	if waiting(no) {
		log.Info("The update run has not started yet", "reason", no.Message)
		return false, nil // The change that it waits for triggers it.
	}
	s := newConditionWriter(run, r.Clock.Now())
	if no != nil {
		log.Info("The update run cannot start", "reason", no.Message)
		status = placementv1beta1.UpdateRunStatus{Conditions: run.GetStatus().Conditions}
		s.set(&status.Conditions, placementv1beta1.ConditionUpdateRunInitialized, metav1.ConditionFalse,
			placementv1beta1.ReasonUpdateRunInitializedFailed, no.Message)
		return false, r.write(ctx, run, &status)
	}
	s.set(&status.Conditions, placementv1beta1.ConditionUpdateRunInitialized, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunInitializedSuccessfully, "The stages have been computed")
	return true, r.write(ctx, run, &status)
}

// plan is the initial status of a run.
func (r *Reconciler) plan(ctx context.Context, run placementv1beta1.UpdateRunObject) (placementv1beta1.UpdateRunStatus, *refusal.Refusal, error) {
	none := placementv1beta1.UpdateRunStatus{}
	o, err := r.observed(ctx, run, true)
	if err != nil {
		return none, nil, err
	}
	strategy, err := r.strategy(ctx, run)
	if err != nil {
		return none, nil, err
	}
	status, no := Initialize(o, strategy)
	if no != nil {
		return none, no, nil
	}
	master, no, err := r.resources(ctx, run, o.Placement)
	if err != nil || no != nil {
		return none, no, err
	}
	status.ResourceSnapshotIndexUsed = master.Labels[placementv1beta1.ResourceIndexLabel]
	return status, nil, r.recordOverrides(ctx, placementOf(run), &status, master.Name)
}

func (r *Reconciler) step(ctx context.Context, run placementv1beta1.UpdateRunObject) (ctrl.Result, error) {
	step, no, err := r.next(ctx, run)
	if err != nil || waiting(no) {
		return ctrl.Result{}, err
	}
	if step.Refused != "" {
		ctrl.LoggerFrom(ctx).Info("The update run failed", "reason", step.Refused)
	}
	if err := r.take(ctx, run, step); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: step.Again}, r.write(ctx, run, step.Status)
}

// next decides from the cache, but lets a run fail only after reading the API server.
func (r *Reconciler) next(ctx context.Context, run placementv1beta1.UpdateRunObject) (Step, *refusal.Refusal, error) {
	o, err := r.observed(ctx, run, false)
	if err != nil {
		return Step{}, nil, err
	}
	step, no := Next(o)
	if step.Refused == "" {
		return step, no, nil
	}
	if o, err = r.observed(ctx, run, true); err != nil {
		return Step{}, nil, err
	}
	step, no = Next(o)
	return step, no, nil
}

func (r *Reconciler) take(ctx context.Context, run placementv1beta1.UpdateRunObject, step Step) error {
	var group errgroup.Group // A conflict must not stop the other writes.
	group.SetLimit(writers)
	for _, b := range step.Bind {
		group.Go(func() error { return r.bind(ctx, b) })
	}
	for _, b := range step.Delete {
		group.Go(func() error { return r.remove(ctx, b) })
	}
	for _, q := range step.Ask {
		group.Go(func() error {
			if err := r.Client.Create(ctx, q.object(client.ObjectKeyFromObject(run))); err != nil {
				return fmt.Errorf("making approval request %q: %w", q.Name, err)
			}
			return nil
		})
	}
	for _, a := range step.Accept {
		group.Go(func() error { return r.accept(ctx, a) })
	}
	return group.Wait()
}

func (r *Reconciler) bind(ctx context.Context, b Binding) error {
	return reconcileutil.Patch(ctx, r.Client, b.Object, b.start, "changing binding %q", b.Object.GetName())
}

func (r *Reconciler) remove(ctx context.Context, b placementv1beta1.BindingObject) error {
	unchanged := client.Preconditions{UID: new(b.GetUID()), ResourceVersion: new(b.GetResourceVersion())}
	if err := r.Client.Delete(ctx, b, unchanged); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting binding %q: %w", b.GetName(), err)
	}
	return nil
}

func (r *Reconciler) accept(ctx context.Context, a placementv1beta1.ApprovalRequestObject) error {
	return reconcileutil.PatchStatus(ctx, r.Client, a, func() {
		meta.SetStatusCondition(&a.GetStatus().Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionApprovalRequestApprovalAccepted, Status: metav1.ConditionTrue, ObservedGeneration: a.GetGeneration(),
			Reason: placementv1beta1.ReasonApprovalRequestApprovalAccepted, Message: "The run continues; the approval cannot be revoked",
			LastTransitionTime: metav1.NewTime(r.Clock.Now()),
		})
	}, "accepting approval request %q", a.GetName())
}

func (r *Reconciler) write(ctx context.Context, run placementv1beta1.UpdateRunObject, status *placementv1beta1.UpdateRunStatus) error {
	before := run.GetStatus().DeepCopy()
	if err := reconcileutil.PatchStatus(ctx, r.Client, run, func() { *run.GetStatus() = *status }, "writing the status"); err != nil {
		return err
	}
	if why := beginsToStick(before, status); why != "" {
		r.Recorder.Eventf(run, nil, corev1.EventTypeWarning, placementv1beta1.ReasonUpdateRunStuck, "Update", "%s", why)
	}
	return nil
}

// beginsToStick is the message when a run starts to wait too long for members, or for other members
// than before; otherwise empty.
func beginsToStick(before, after *placementv1beta1.UpdateRunStatus) string {
	stuck := func(status *placementv1beta1.UpdateRunStatus) string {
		c := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionUpdateRunProgressing)
		if c == nil || c.Reason != placementv1beta1.ReasonUpdateRunStuck {
			return ""
		}
		return c.Message
	}
	if why := stuck(after); why != stuck(before) {
		return why
	}
	return ""
}

// finalize deletes a run's approval requests and removes the finalizer. Members keep what they have.
func (r *Reconciler) finalize(ctx context.Context, run placementv1beta1.UpdateRunObject) error {
	if !controllerutil.ContainsFinalizer(run, placementv1beta1.UpdateRunFinalizer) {
		return nil
	}
	err := r.Live.DeleteAllOf(ctx, newApproval(run.GetNamespace()), client.InNamespace(run.GetNamespace()),
		client.MatchingLabels{placementv1beta1.TargetUpdateRunLabel: run.GetName()})
	if err != nil {
		return fmt.Errorf("deleting its approval requests: %w", err)
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, run, placementv1beta1.UpdateRunFinalizer, "removing the finalizer")
}
