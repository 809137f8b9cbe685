// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// Reconciler applies the Works of one member.
type Reconciler struct {
	options   Options
	hub       client.Client
	hubReader client.Reader // not cached
	engine    *engine.Engine
	records   *records
	appliers  appliers
	throttle  *throttle
	events    events.EventRecorder
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// New returns a Reconciler. It sends no request to the member yet.
func New(options Options) (*Reconciler, error) {
	o, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	r := &Reconciler{options: o, throttle: newThrottle(o)}
	known := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(known); err != nil {
		return nil, err
	}
	member, err := client.New(o.MemberAPI.Config, client.Options{Scheme: known, Mapper: o.MemberAPI.Kinds, HTTPClient: o.MemberAPI.Client})
	if err != nil {
		return nil, fmt.Errorf("setting up %s: making the member's client: %w", ControllerName, err)
	}
	r.appliers = appliers{account: o.NamespacedApplier, member: o.MemberAPI}
	r.engine = o.MemberAPI.For(dialect(), engine.Options{
		Tuning: o.Tuning, Retries: r.throttle.retries, Records: appliedWorks(), ReservesNamespaces: o.OnlyLabelledNamespaces}, family{r})
	r.records = &records{options: o, member: member, kept: engine.NewRecordCache[*placementv1beta1.AppliedWork](r.engine.Observed, o.Clock)}
	return r, nil
}

// SetupWithManager adds the controller to the hub's manager. Its cache only needs the Works of the
// member's namespace.
func (r *Reconciler) SetupWithManager(ctx context.Context, hub ctrl.Manager) error {
	r.connect(hub.GetClient(), hub.GetAPIReader(), hub.GetEventRecorder(ControllerName))
	if err := hub.GetFieldIndexer().IndexField(ctx, &placementv1beta1.Work{}, worksByObject, objectsOf); err != nil {
		return fmt.Errorf("indexing Works by their objects: %w", err)
	}
	return ctrl.NewControllerManagedBy(hub).
		Named(ControllerName).
		// The status is written by the agent alone, so only spec and deletion trigger a reconcile.
		Watches(&placementv1beta1.Work{}, enqueueWorks(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// When the member leaves, Works with a waiting deletion are released; an administrator can
		// release retained objects by an annotation.
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.waitingWorks),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Channel(r.engine.Changes(), handler.Funcs{GenericFunc: enqueueTouched})).
		WithOptions(r.options.ControllerOptions()).
		Complete(r)
}

func (r *Reconciler) connect(hub client.Client, reader client.Reader, recorder events.EventRecorder) {
	r.hub, r.hubReader, r.events, r.records.hub = hub, reader, recorder, hub
}

// Reconcile applies one Work to the member.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if ctx.Err() != nil {
		//lint:ignore nilerr The agent is stopping; the error is a consequence.
		return reconcile.Result{}, nil
	}
	if apierrors.IsConflict(err) || errors.Is(err, errBehind) {
		return reconcile.Result{RequeueAfter: engine.FirstErrorRetry}, nil // expected: another client wrote first
	}
	if err != nil && result.Priority == nil {
		result.Priority = ptr.To(retryPriority)
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	work := &placementv1beta1.Work{}
	err := r.hub.Get(ctx, request.NamespacedName, work)
	if apierrors.IsNotFound(err) {
		return r.vanished(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting Work %q: %w", request.Name, err)
	}
	wait, leave := r.throttle.admit(work)
	if wait != nil {
		return *wait, nil
	}
	defer leave()
	if work.DeletionTimestamp != nil {
		progress := r.throttle.of(work.Name) // finalize may delete the entry
		result, err := r.finalize(ctx, work)
		progress.ended(work.Generation, err == nil)
		return result, err
	}
	if err := r.ensureFinalizer(ctx, work); err != nil {
		return reconcile.Result{}, err
	}
	p, later, err := r.plan(ctx, work)
	if p == nil || err != nil {
		return later, err
	}
	result, err := r.apply(ctx, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.updateRetention(ctx, p, result); err != nil {
		return reconcile.Result{}, err
	}
	return r.report(ctx, p, result)
}

// forget discards everything that is cached for a Work.
func (r *Reconciler) forget(work string) {
	r.engine.Forget(work)
	r.records.kept.Forget(work)
	r.throttle.forget(work)
}
