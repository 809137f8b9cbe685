// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Name is the controller's name.
const Name = "binding.works"

// Snapshots reads the snapshots that bindings name; *snapshot.Contents implements it.
type Snapshots interface {
	Group(ctx context.Context, master types.NamespacedName) (*snapshot.Group, error)
}

// Reconciler writes the Works of bindings and reports their status.
type Reconciler struct {
	Client client.Client
	// Live reads without the cache, where nothing may be missed.
	Live      client.Reader
	Snapshots Snapshots
	// Charts renders charts; nil if snapshots contain none.
	Charts Charts
	// Scopes reports whether a kind of the hub is namespaced.
	Scopes helmchart.Scopes
	// Authors limits what is sent; nil means no limit.
	Authors *Authors
	Clock   clock.PassiveClock
	// Workers is the number of bindings that are reconciled at a time.
	Workers int

	// Recorder is for events of placements.
	Recorder events.EventRecorder

	inFlight  inFlight
	deletions deletions
}

// SetupWithManager registers the controller. It reconciles a binding when
//   - its spec changes or it is being deleted;
//   - one of its Works changes, or a Work that blocks one of its names;
//   - its placement changes reportBackStrategy, requests another author check, is paused or resumed, or a
//     removal of its objects is confirmed;
//   - its member joins, leaves, is paused or resumed, or stops or resumes its heartbeat;
//   - its member changes in a property that overrides or charts use;
//   - a chart has been rendered.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	respecified := builder.WithPredicates(predicate.Or(reportBackChanges(), objects.AuthorCheckChanged(), objects.PauseChanged(), objects.Confirmed()))
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&placementv1beta1.ClusterResourceBinding{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&placementv1beta1.ResourceBinding{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&placementv1beta1.Work{}, r.bindingsOf(), builder.WithPredicates(workChanges())).
		Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(hasOverrides), builder.WithPredicates(override.MemberChanges())).
		Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(every), builder.WithPredicates(predicate.Or(objects.PauseChanged(), comeOrGone(), fallsSilent()))).
		Watches(&placementv1beta1.ClusterResourcePlacement{}, r.bindingsFor(), respecified).
		Watches(&placementv1beta1.ResourcePlacement{}, r.bindingsFor(), respecified).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	if r.Charts != nil {
		// Only snapshots know which bindings have a chart.
		b = b.WatchesRawSource(r.Charts.Source()).
			Watches(&clusterv1beta1.MemberCluster{}, r.bindingsTo(every), builder.WithPredicates(helmchart.MemberChanges()))
	}
	return reconcileutil.SetupError(Name, b.Complete(r))
}

// Reconcile dispatches one binding.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b := objects.NewBinding(req.Namespace)
	err := r.Client.Get(ctx, req.NamespacedName, b)
	var again time.Duration
	switch {
	case apierrors.IsNotFound(err):
		r.inFlight.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading binding %q: %w", req.Name, err)
	case b.GetDeletionTimestamp() != nil:
		err = r.finalize(ctx, b)
	case b.GetSpec().ResourceSnapshotName == "":
		return ctrl.Result{}, nil // The rollout has not reached it yet.
	default:
		again, err = r.dispatch(ctx, b)
	}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	case objects.RefusedAsGoing(err):
		return ctrl.Result{RequeueAfter: objects.GoingDelay}, nil
	case errors.Is(err, helmchart.ErrExhausted), errors.Is(err, helmchart.ErrUnreachable):
		return ctrl.Result{RequeueAfter: helmchart.Pause}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

func (r *Reconciler) dispatch(ctx context.Context, b placementv1beta1.BindingObject) (again time.Duration, err error) {
	works, err := r.worksOf(ctx, b)
	if err != nil {
		return 0, err
	}
	member, err := r.member(ctx, b.GetSpec().TargetCluster)
	if err != nil {
		return 0, err
	}
	if b.GetSpec().State != placementv1beta1.BindingBound {
		return r.writeStatus(ctx, b, dropped(b, member, works))
	}
	if member == nil {
		return 0, nil // The scheduler deletes the binding of a leaving member.
	}
	if err := r.ensureFinalizer(ctx, b); err != nil {
		return 0, err
	}
	placement, err := r.placement(ctx, b)
	if err != nil {
		return 0, err
	}
	works, err = r.sync(ctx, b, placement, member, works)
	if apierrors.IsConflict(err) {
		return 0, err
	}
	switch {
	case errors.Is(err, helmchart.ErrRendering):
		return 0, nil // The completed deletion triggers the binding again.
	case errors.Is(err, errSettling):
		return deletionSettle / 2, nil
	}
	refused := refusal.Of(err)
	s := synced{works: works, silent: silence(member), external: rolledOutByRuns(placement)}
	switch {
	case refused != nil && refused.Reason == placementv1beta1.ReasonOverriddenFailed:
		s.misfit = err.Error()
	case err != nil:
		s.problem = err.Error()
	}
	again, statusErr := r.writeStatus(ctx, b, s)
	switch {
	case statusErr == nil && errors.Is(err, errSuspended):
		return deletionRecheck, nil
	case statusErr != nil || refused != nil:
		return again, statusErr // Only a user's change helps, which triggers the binding again.
	case err == nil && again == 0 && suspendedByLabels(placement):
		return deletionRecheck, nil // The labels of other members may be set again.
	}
	return again, err
}

// dropped returns the state of a binding that waits for its removal. A member that is gone or never got
// anything is a problem: the rollout waits for Works that can still become available, and these cannot.
func dropped(b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster, works []*placementv1beta1.Work) synced {
	s := synced{works: works, silent: silence(member)}
	switch {
	case member == nil:
		s.problem = fmt.Sprintf("member %q has left", b.GetSpec().TargetCluster)
	case len(works) == 0:
		s.problem = fmt.Sprintf("member %q was dropped before anything was sent to it", b.GetSpec().TargetCluster)
	}
	return s
}

// worksOf lists the binding's Works from the cache, sorted by name.
func (r *Reconciler) worksOf(ctx context.Context, b placementv1beta1.BindingObject) ([]*placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	err := r.Client.List(ctx, &list, client.MatchingFields{worksByBinding: b.GetName()},
		client.InNamespace(clusterv1beta1.MemberNamespace(b.GetSpec().TargetCluster)))
	if err != nil {
		return nil, fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	var works []*placementv1beta1.Work
	for i := range list.Items {
		if belongs(&list.Items[i], b) {
			works = append(works, &list.Items[i])
		}
	}
	slices.SortFunc(works, func(a, b *placementv1beta1.Work) int { return strings.Compare(a.Name, b.Name) })
	return works, nil
}

// silence says since when an expected member has had no heartbeat, as the end of a sentence; "" if it
// is connected. The time is the hub's.
func silence(member *clusterv1beta1.MemberCluster) string {
	if member == nil {
		return ""
	}
	since, silent := member.SilentSince()
	if !silent {
		return ""
	}
	return fmt.Sprintf("nothing is heard of member %q since %s: see its condition Joined", member.Name, since.UTC().Format(time.RFC3339))
}

// member reads a member; nil if it is deleted or being deleted.
func (r *Reconciler) member(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	var member clusterv1beta1.MemberCluster
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &member)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	if err != nil || member.DeletionTimestamp != nil {
		//lint:ignore nilerr A missing object is a result, not an error.
		return nil, nil
	}
	return &member, nil
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, b placementv1beta1.BindingObject) error {
	return reconcileutil.AddFinalizer(ctx, r.Client, b, placementv1beta1.WorkCleanupFinalizer, "adding the finalizer to binding %q", b.GetName())
}

func (r *Reconciler) writeStatus(ctx context.Context, b placementv1beta1.BindingObject, s synced) (again time.Duration, err error) {
	status, key := desiredStatus(b, s), client.ObjectKeyFromObject(b)
	if equality.Semantic.DeepEqual(*b.GetStatus(), status) {
		r.inFlight.forget(key)
		return 0, nil
	}
	if s.problem == "" && s.misfit == "" && isInFlight(&status, b.GetGeneration()) {
		if again = r.inFlight.wait(key, r.Clock.Now()); again > 0 {
			return again, nil
		}
	}
	*b.GetStatus() = status
	// Update instead of patch: the whole object is at hand, and the API server would merge and prune a patch first.
	if err := r.Client.Status().Update(ctx, b); err != nil {
		return 0, fmt.Errorf("writing the status of binding %q: %w", b.GetName(), err)
	}
	r.inFlight.forget(key)
	return 0, nil
}

// finalize deletes the binding's Works and removes the finalizer once they are deleted. The deletion of
// the last Work triggers the binding again.
func (r *Reconciler) finalize(ctx context.Context, b placementv1beta1.BindingObject) error {
	if !controllerutil.ContainsFinalizer(b, placementv1beta1.WorkCleanupFinalizer) {
		return nil
	}
	member, err := r.member(ctx, b.GetSpec().TargetCluster)
	if err != nil {
		return err
	}
	stays := member != nil
	if stays && placementv1beta1.Paused(member) {
		return nil // The resources on the member stay. Resuming triggers the binding again.
	}
	works, err := r.liveWorksOf(ctx, b)
	if err != nil {
		return err
	}
	if err := r.tellWhy(ctx, b, works, stays); err != nil {
		return err
	}
	if !stays || len(works) == 0 {
		return r.removeFinalizer(ctx, b)
	}
	for _, work := range works {
		if work.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, whole(work), client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q of member %q: %w", work.Name, b.GetSpec().TargetCluster, err)
		}
	}
	return nil
}

// liveWorksOf lists the metadata of the binding's Works from the API server, because none may be
// missed.
func (r *Reconciler) liveWorksOf(ctx context.Context, b placementv1beta1.BindingObject) ([]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
	err := r.Live.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.GetName()},
		client.InNamespace(clusterv1beta1.MemberNamespace(b.GetSpec().TargetCluster)))
	if err != nil {
		return nil, fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	var works []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if list.Items[i].Labels[placementv1beta1.ParentPlacementNamespaceLabel] == b.GetNamespace() {
			works = append(works, &list.Items[i])
		}
	}
	return works, nil
}

// whole returns a Work with the name of a metadata object, for writes.
func whole(work *metav1.PartialObjectMetadata) *placementv1beta1.Work {
	return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
}

func (r *Reconciler) removeFinalizer(ctx context.Context, b placementv1beta1.BindingObject) error {
	return reconcileutil.RemoveFinalizer(ctx, r.Client, b, placementv1beta1.WorkCleanupFinalizer, "removing the finalizer of binding %q", b.GetName())
}
