// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// Name is the controller's name.
const Name = "placement.snapshots"

// Selector finds what a placement selects; *selection.Selector implements it.
type Selector interface {
	Select(ctx context.Context, placement types.NamespacedName, terms []placementv1beta1.ResourceSelectorTerm, bound *selection.Bound) (selection.Selected, error)
	Forget(placement types.NamespacedName)
}

// Users knows who needs resource snapshots besides bindings; updaterun.Users implements it.
type Users interface {
	// Needed names the masters that unfinished runs of a placement roll out now or later.
	Needed(ctx context.Context, placement types.NamespacedName) ([]string, error)
}

// Reconciler creates the snapshots of placements.
type Reconciler struct {
	// Client reads through the cache.
	Client client.Client
	// Live reads and writes without the cache, because resource snapshots are too large for memory.
	Live     client.Client
	Selector Selector
	// Users are the other users of snapshots; a used snapshot is not removed.
	Users Users
	// Changes queues placements whose selection may have changed.
	Changes  source.Source
	Recorder events.EventRecorder
	// Envelopes says which objects are envelopes.
	Envelopes Envelopes
	// CheckAuthors limits placements to the resources that their authors are allowed to place, and
	// sets a condition on those whose author was not checked.
	CheckAuthors bool
	// Intervals are the durations for which changes are gathered into one group of resource snapshots.
	Intervals Intervals
	Clock     clock.PassiveClock
	// Snapshots reads the previous selection.
	Snapshots Reader
	// Workers is the number of placements that are reconciled at a time.
	Workers int
}

// SetupWithManager registers the controller. It reconciles a placement when its spec or its author
// check changes, when it is being deleted, when its selected resources change, and when somebody else
// changes one of its snapshots.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	old := predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
	deletions := predicate.Funcs{
		CreateFunc:  old.CreateFunc,
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	touched := builder.WithPredicates(old, predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	respecified := builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, objects.AuthorCheckChanged(), objects.Confirmed()))
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourcePlacement{}, respecified).
		Watches(&placementv1beta1.ResourcePlacement{}, &handler.EnqueueRequestForObject{}, respecified).
		Watches(&placementv1beta1.ClusterSchedulingPolicySnapshot{}, objects.EnqueuePlacement(), touched).
		Watches(&placementv1beta1.SchedulingPolicySnapshot{}, objects.EnqueuePlacement(), touched).
		WatchesMetadata(&placementv1beta1.ClusterResourceSnapshot{}, objects.EnqueuePlacement(), builder.WithPredicates(deletions)).
		WatchesMetadata(&placementv1beta1.ResourceSnapshot{}, objects.EnqueuePlacement(), builder.WithPredicates(deletions)).
		WatchesRawSource(r.Changes).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflictsAfter(objects.RetryDelay, r)))
}

// Reconcile keeps the snapshots of one placement up to date.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	placement, err := objects.Placement(ctx, r.Client, req.NamespacedName)
	switch {
	case apierrors.IsNotFound(err):
		r.Selector.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	reader := client.Reader(r.Client)
	if placement.GetDeletionTimestamp() != nil {
		reader = r.Live // It was deleted with its namespace, which the cache does not know yet.
	}
	var wait time.Duration
	going, err := objects.NamespaceGoing(ctx, reader, req.Namespace)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case placement.GetDeletionTimestamp() != nil:
		err = r.finalize(ctx, req.NamespacedName, placement, going)
	case !going: // Otherwise its own deletion follows.
		wait, err = r.reconcileSnapshots(ctx, req.NamespacedName, placement)
	}
	return objects.Again(ctrl.Result{RequeueAfter: wait}, err)
}

// reconcileSnapshots returns how long a change has to wait for its snapshots; zero if nothing waits.
func (r *Reconciler) reconcileSnapshots(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (time.Duration, error) {
	if err := r.ensureFinalizers(ctx, placement); err != nil {
		return 0, err
	}
	if refused := movedNamespace(placement); refused != nil {
		return 0, r.reportInvalid(ctx, placement, refused)
	}
	wait, err := r.reconcileResources(ctx, key, placement)
	if err != nil {
		if refused := refusal.Of(err); refused != nil {
			return 0, r.reportInvalid(ctx, placement, refused)
		}
		if errors.Is(err, selection.ErrUnreadable) {
			return 0, errors.Join(err, r.reportUnreadable(ctx, placement, err))
		}
		return 0, err
	}
	if err := r.withdrawInvalid(ctx, placement); err != nil {
		return 0, err
	}
	return wait, r.reconcilePolicy(ctx, key, placement)
}

// movedNamespace rejects a new namespace for a placement whose status is readable in the selected
// namespace: readers there would keep an outdated status.
func movedNamespace(placement placementv1beta1.PlacementObject) *refusal.Refusal {
	spec := placement.GetSpec()
	if placement.GetNamespace() != "" || spec.StatusReportingScope != placementv1beta1.NamespaceAccessible {
		return nil
	}
	for _, resource := range placement.GetStatus().SelectedResources {
		if resource.Group == "" && resource.Kind == "Namespace" && resource.Name != objects.SelectedNamespace(spec) {
			return refusal.New(placementv1beta1.ReasonInvalidResourceSelectors,
				"the resource selectors choose namespace %q instead of %q, which is not allowed with statusReportingScope NamespaceAccessible; choose the previous namespace again, or create another placement",
				objects.SelectedNamespace(spec), resource.Name)
		}
	}
	return nil
}

// ensureFinalizers also adds the scheduler's finalizer, which saves a write.
func (r *Reconciler) ensureFinalizers(ctx context.Context, placement placementv1beta1.PlacementObject) error {
	before := placement.DeepCopyObject().(client.Object)
	added := controllerutil.AddFinalizer(placement, placementv1beta1.PlacementCleanupFinalizer)
	if !controllerutil.AddFinalizer(placement, placementv1beta1.SchedulerCleanupFinalizer) && !added {
		return nil
	}
	if err := r.Client.Patch(ctx, placement, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("adding finalizers to placement %q: %w", placement.GetName(), err)
	}
	return nil
}

// reconcileResources creates a new group of resource snapshots if the selection changed. Under an
// external rollout, update runs request the groups.
func (r *Reconciler) reconcileResources(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) (time.Duration, error) {
	if placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		r.Selector.Forget(key)
		return 0, r.reportAuthor(ctx, placement, nil)
	}
	_, wait, err := r.take(ctx, placement, r.Intervals)
	return wait, err
}

// nextIndex is one more than the highest index of all groups, complete or not.
func nextIndex[T metav1.Object](existing []T, indexOf func(metav1.Object) int) int {
	next := 0
	for _, s := range existing {
		next = max(next, indexOf(s)+1)
	}
	return next
}

// demoteResources removes the latest label from all others.
func (r *Reconciler) demoteResources(ctx context.Context, existing []*metav1.PartialObjectMetadata, latest string) error {
	for _, s := range existing {
		if s.Name == latest || !objects.IsLatest(s) {
			continue
		}
		if err := r.Live.Patch(ctx, s, demotion()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("demoting resource snapshot %q: %w", s.Name, err)
		}
	}
	return nil
}

func demotion() client.Patch {
	return client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+placementv1beta1.IsLatestSnapshotLabel+`":"false"}}}`))
}

// trimResources deletes the groups beyond the limit, including those of bindings in a rolling update
// that does not progress. Members of such bindings keep what they have. A binding whose Works have to
// be re-created moves to the latest group before its turn. Under an external rollout, members stay on
// older groups on purpose, and need them.
func (r *Reconciler) trimResources(ctx context.Context, key types.NamespacedName, existing []*metav1.PartialObjectMetadata, placement placementv1beta1.PlacementObject) error {
	if len(existing) <= 1 {
		return nil
	}
	used := map[string]bool{}
	if placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		bindings, err := objects.Bindings(ctx, r.Client, key)
		if err != nil {
			return err
		}
		for _, b := range bindings {
			used[b.GetSpec().ResourceSnapshotName] = true
		}
	}
	needed, err := r.Users.Needed(ctx, key)
	if err != nil {
		return err
	}
	for _, name := range needed {
		used[name] = true
	}
	for _, s := range surplus(existing, historyLimit(placement), used) {
		if err := r.Live.Delete(ctx, s); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting resource snapshot %q: %w", s.Name, err)
		}
	}
	return nil
}

// reconcilePolicy creates a new policy snapshot if the policy changed. Otherwise it only records the
// placement's generation on the current one.
func (r *Reconciler) reconcilePolicy(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject) error {
	policy := policyOf(placement.GetSpec())
	hash, err := policyHash(policy)
	if err != nil {
		return err
	}
	existing, err := objects.PolicySnapshots(ctx, r.Client, key)
	if err != nil {
		return err
	}
	latest := objects.LatestPolicySnapshot(placement, existing)
	if latest == nil || !isOfPolicy(latest.GetSpec(), policy, hash) {
		latest = desiredPolicySnapshot(placement, policy, hash, nextIndex(existing, objects.PolicyIndex))
		err = r.createPolicy(ctx, placement, latest)
	} else {
		err = r.annotatePolicy(ctx, latest, policyAnnotations(placement, policy))
	}
	if err != nil {
		return err
	}
	return r.retirePolicies(ctx, existing, latest.GetName(), historyLimit(placement))
}

func (r *Reconciler) createPolicy(ctx context.Context, placement placementv1beta1.PlacementObject, s placementv1beta1.PolicySnapshotObject) error {
	if err := controllerutil.SetControllerReference(placement, s, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning policy snapshot %q: %w", s.GetName(), err)
	}
	if err := r.Client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating policy snapshot %q: %w", s.GetName(), err)
	}
	return nil
}

func (r *Reconciler) annotatePolicy(ctx context.Context, s placementv1beta1.PolicySnapshotObject, annotations map[string]string) error {
	before := s.DeepCopyObject().(client.Object)
	s.SetAnnotations(with(s.GetAnnotations(), annotations))
	if equality.Semantic.DeepEqual(before.GetAnnotations(), s.GetAnnotations()) {
		return nil
	}
	if err := r.Client.Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("annotating policy snapshot %q: %w", s.GetName(), err)
	}
	return nil
}

// retirePolicies removes the latest label from the older snapshots and deletes those beyond the limit.
func (r *Reconciler) retirePolicies(ctx context.Context, existing []placementv1beta1.PolicySnapshotObject, latest string, limit int) error {
	var older []placementv1beta1.PolicySnapshotObject
	for _, s := range existing {
		if s.GetName() != latest {
			older = append(older, s)
		}
	}
	surplus := max(0, len(older)+1-limit)
	for i, s := range older {
		var err error
		switch {
		case i < surplus:
			err = client.IgnoreNotFound(r.Client.Delete(ctx, s))
		case objects.IsLatest(s):
			err = client.IgnoreNotFound(r.Client.Patch(ctx, s, demotion()))
		}
		if err != nil {
			return fmt.Errorf("retiring policy snapshot %q: %w", s.GetName(), err)
		}
	}
	return nil
}

func historyLimit(placement placementv1beta1.PlacementObject) int {
	const standard = 10
	if limit := placement.GetSpec().RevisionHistoryLimit; limit != nil && *limit > 0 {
		return int(*limit)
	}
	return standard
}

// finalize deletes the snapshots of a placement that is being deleted, and removes the finalizer. The
// scheduler deletes the bindings. A namespace that is being deleted accepts no events.
func (r *Reconciler) finalize(ctx context.Context, key types.NamespacedName, placement placementv1beta1.PlacementObject, going bool) error {
	r.Selector.Forget(key)
	if !controllerutil.ContainsFinalizer(placement, placementv1beta1.PlacementCleanupFinalizer) {
		return nil
	}
	mine := []client.DeleteAllOfOption{
		client.MatchingLabels{placementv1beta1.ParentPlacementLabel: key.Name}, client.InNamespace(key.Namespace),
	}
	if err := r.Live.DeleteAllOf(ctx, objects.NewPolicySnapshot(key.Namespace), mine...); err != nil {
		return fmt.Errorf("deleting policy snapshots of placement %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	if err := r.Live.DeleteAllOf(ctx, objects.NewResourceSnapshot(key.Namespace), mine...); err != nil {
		return fmt.Errorf("deleting resource snapshots of placement %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	before := placement.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(placement, placementv1beta1.PlacementCleanupFinalizer)
	err := r.Client.Patch(ctx, placement, reconcileutil.PatchFrom(before))
	if apierrors.IsNotFound(err) {
		return nil // An earlier reconcile removed it, which the cache does not know yet.
	}
	if err != nil {
		return fmt.Errorf("removing the finalizer of placement %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	if !going {
		r.Recorder.Eventf(placement, nil, "Normal", "PlacementCleanupFinalizerRemoved", "Delete", "Deleted the snapshots of the placement")
	}
	return nil
}
