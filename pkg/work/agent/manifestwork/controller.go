// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// Reconciler applies the ManifestWorks of one cluster.
type Reconciler struct {
	options   Options
	hash      string // of the hub
	hub       client.Client
	hubReader client.Reader // not cached
	engine    *engine.Engine
	records   *recordKeeper
	executors *executors
	ruler     *ruler
	progress  *progress
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// New returns a Reconciler. It sends no request to the cluster yet.
func New(options Options) (*Reconciler, error) {
	o, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	known := runtime.NewScheme()
	if err := workv1.AddToScheme(known); err != nil {
		return nil, err
	}
	member, err := client.New(o.MemberAPI.Config, client.Options{Scheme: known, Mapper: o.MemberAPI.Kinds, HTTPClient: o.MemberAPI.Client})
	if err != nil {
		return nil, fmt.Errorf("setting up %s: making the cluster's client: %w", ControllerName, err)
	}
	r := &Reconciler{options: o, hash: HubHash(o.HubURL), progress: newProgress()}
	if r.executors, err = newExecutors(o); err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	if r.ruler, err = newRuler(); err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	r.engine = o.MemberAPI.For(dialect(), engine.Options{
		Tuning: o.Tuning, Retries: r.progress.retries, Records: records(), ReservesNamespaces: o.OnlyLabelledNamespaces}, family{r})
	r.records = &recordKeeper{options: o, hash: r.hash, member: member, kinds: o.MemberAPI.Kinds, kept: engine.NewRecordCache[*workv1.AppliedManifestWork](r.engine.Observed, o.Clock)}
	return r, nil
}

// SetupWithManager adds the controller to the hub's manager. Its cache only needs the ManifestWorks
// of the cluster's namespace.
func (r *Reconciler) SetupWithManager(ctx context.Context, hub ctrl.Manager) error {
	r.hub, r.hubReader = hub.GetClient(), hub.GetAPIReader()
	r.options.Epochs.RegisterLargest(r.records.largestEpoch)
	if err := hub.GetFieldIndexer().IndexField(ctx, &workv1.ManifestWork{}, worksByObject, objectsOf); err != nil {
		return fmt.Errorf("indexing ManifestWorks by their objects: %w", err)
	}
	rights := r.executors.rights
	if err := hub.Add(manager.RunnableFunc(rights.Run)); err != nil {
		return fmt.Errorf("adding the watch on rights: %w", err)
	}
	return ctrl.NewControllerManagedBy(hub).
		Named(ControllerName).
		// The status is written by the agent alone, so only spec, labels and deletion trigger a
		// reconcile.
		Watches(&workv1.ManifestWork{}, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		WatchesRawSource(source.Channel(r.engine.Changes(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(rights.events, handler.EnqueueRequestsFromMapFunc(r.bounded))).
		WithOptions(r.options.ControllerOptions()).
		Complete(r)
}

// bounded returns requests for all ManifestWorks with an executor.
func (r *Reconciler) bounded(ctx context.Context, _ client.Object) []reconcile.Request {
	return enqueue.Those(ctx, r.hub, &workv1.ManifestWorkList{}, func(work *workv1.ManifestWork) bool {
		return work.Spec.Executor != nil
	}, client.InNamespace(r.options.Cluster))
}

// Reconcile applies one ManifestWork to the cluster. A request without a namespace is for the
// AppliedManifestWork of that name, which belongs to no ManifestWork of this hub.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: engine.FirstErrorRetry}, nil // expected: another client wrote first
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Namespace == "" {
		return r.reconcileForeignRecord(ctx, request.Name)
	}
	work := &workv1.ManifestWork{}
	err := r.hub.Get(ctx, request.NamespacedName, work)
	if apierrors.IsNotFound(err) {
		return r.vanished(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting ManifestWork %q: %w", request.Name, err)
	}
	if wait := r.progress.begin(work, r.options.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if work.DeletionTimestamp != nil {
		return r.finalize(ctx, work)
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

func (r *Reconciler) ensureFinalizer(ctx context.Context, work *workv1.ManifestWork) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, workv1.ManifestWorkFinalizer) {
		return nil
	}
	if err := r.hub.Patch(ctx, work, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("adding the finalizer to ManifestWork %q: %w", work.Name, err)
	}
	r.progress.wrote(work, r.options.Clock.Now())
	return nil
}

// apply applies the planned manifests. If the ManifestWork also defines a kind, it waits once per
// generation until the cluster serves that kind, and applies again.
func (r *Reconciler) apply(ctx context.Context, p *planned) (engine.Result, error) {
	if p.refused != nil {
		//lint:ignore nilerr Each item reports the refusal.
		return engine.RefuseAll(p.items, p.refused), nil
	}
	if isResting(p.work) {
		return r.engine.Compare(ctx, p.job, engine.MapModes(p.items, resting)), nil
	}
	result := r.engine.Apply(ctx, p.job, p.items)
	if r.progress.isNew(p.work) && r.engine.AwaitKinds(ctx, p.items, result.Manifests) {
		if err := r.arrange(ctx, p); err != nil {
			return engine.Result{}, err
		}
		result = r.engine.Apply(ctx, p.job, p.items)
	}
	engine.NameAccount(result.Manifests, p.cannot)
	for place, refused := range p.withheld {
		if place < len(result.Manifests) && result.Manifests[place].Refused == nil {
			result.Manifests[place].Refused = refused
		}
	}
	return result, nil
}

// resting is the Mode of manifests of a Complete ManifestWork: they are only read.
func resting(mode engine.Mode) engine.Mode {
	return engine.Mode{Method: engine.ReadOnly, Examine: mode.Examine}
}

// forget discards everything that is cached for a ManifestWork.
func (r *Reconciler) forget(work string) {
	r.engine.Forget(work)
	r.records.kept.Forget(r.records.nameOf(work))
	r.progress.forget(work)
}
