// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/apply/merge"
)

const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
	// longestErrorRetry is shorter: an error is mostly a member that was not
	// reached, and comes back for all Works at once.
	firstErrorRetry   = 200 * time.Millisecond
	longestErrorRetry = time.Minute
	// requestTimeout is longer than an API server waits for webhooks, 30 s at most.
	requestTimeout = 40 * time.Second
	// cacheDelay is how long the cache is given to see our own write.
	cacheDelay = 50 * time.Millisecond
	// cacheGrace is after what time that is not waited for any more.
	cacheGrace = 10 * time.Second
)

// Reconciler applies the Works of one member.
type Reconciler struct {
	options   Options
	hub       client.Client
	hubReader client.Reader // not cached
	member    client.Client // not cached
	kinds     apimeta.RESTMapper
	engine    *engine
	appliers  *appliers
	memory    *memory
	watcher   *memberwatch.Watcher
	events    events.EventRecorder
	retries   workqueue.TypedRateLimiter[string] // of refused manifests, by Work
	slow      lane                               // for Works that fail
	turns     workqueue.TypedRateLimiter[string] // of Works that wait for the lane
	touched   chan event.GenericEvent
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// New makes a Reconciler. It does not talk to the member yet.
func New(options Options) (*Reconciler, error) {
	o, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	r := &Reconciler{
		options: o,
		memory:  newMemory(),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry),
		slow:    newLane(o.Works / 2),
		turns:   workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstTurn, longestTurn),
		touched: make(chan event.GenericEvent, 1024),
	}
	if err := r.reachMember(); err != nil {
		return nil, fmt.Errorf("setting up %s: %w", ControllerName, err)
	}
	return r, nil
}

// reachMember makes the clients of the member's API server.
func (r *Reconciler) reachMember() error {
	config := rest.CopyConfig(r.options.MemberConfig)
	if config.QPS == 0 {
		config.QPS = -1 // the member's own priority and fairness limits us
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the member's transport: %w", err)
	}
	if r.kinds, err = apiutil.NewDynamicRESTMapper(config, transport); err != nil {
		return fmt.Errorf("making the member's mapper of kinds: %w", err)
	}
	records := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(records); err != nil {
		return err
	}
	// A request that hangs, mostly in a webhook of the member, must not keep a worker
	// for ever. Watches are meant to last: they keep the client without a limit.
	limited := *transport
	limited.Timeout = requestTimeout
	r.member, err = client.New(config, client.Options{Scheme: records, Mapper: r.kinds, HTTPClient: &limited})
	if err != nil {
		return fmt.Errorf("making the member's client: %w", err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, &limited)
	if err != nil {
		return fmt.Errorf("making the member's client: %w", err)
	}
	watches, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), transport)
	if err != nil {
		return fmt.Errorf("making the member's client: %w", err)
	}
	r.appliers = newAppliers(r.options.NamespacedApplier, config, limited)
	r.engine = &engine{
		member:   objects,
		merger:   merge.Merger{Known: scheme.Scheme},
		clock:    r.options.Clock,
		parallel: r.options.Manifests,
	}
	r.watcher = memberwatch.New(watches, r.touch)
	return nil
}

// SetupWithManager adds the controller to the hub's manager, whose cache has to
// hold the Works of the member's namespace and need not hold more.
func (r *Reconciler) SetupWithManager(ctx context.Context, hub ctrl.Manager) error {
	r.hub, r.hubReader = hub.GetClient(), hub.GetAPIReader()
	r.events = hub.GetEventRecorder(ControllerName)
	if err := hub.GetFieldIndexer().IndexField(ctx, &placementv1beta1.Work{}, worksByObject, objectsOf); err != nil {
		return fmt.Errorf("indexing Works by their objects: %w", err)
	}
	if err := hub.Add(manager.RunnableFunc(r.watcher.Run)); err != nil {
		return fmt.Errorf("adding the watch on the member: %w", err)
	}
	return ctrl.NewControllerManagedBy(hub).
		Named(ControllerName).
		// Only the spec and the deletion matter of a Work: its status is ours.
		Watches(&placementv1beta1.Work{}, enqueueWorks(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// A member that leaves lets go of Works whose deletion waits.
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.deletedWorks),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(r.touched, handler.Funcs{GenericFunc: enqueueTouched})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.options.Works,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				firstErrorRetry, longestErrorRetry),
		}).
		Complete(r)
}

// deletedWorks are those whose deletion is not finished.
func (r *Reconciler) deletedWorks(ctx context.Context, _ client.Object) []reconcile.Request {
	works := &placementv1beta1.WorkList{}
	if err := r.hub.List(ctx, works, client.InNamespace(r.options.HubNamespace)); err != nil {
		return nil // the cache is not there: the controller is stopping
	}
	var requests []reconcile.Request
	for i := range works.Items {
		if works.Items[i].DeletionTimestamp != nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&works.Items[i])})
		}
	}
	return requests
}

// touch has a Work looked at because of a change on the member that is not ours.
func (r *Reconciler) touch(ctx context.Context, e memberwatch.Event) {
	if e.Object.Resource == memberwatch.AppliedWorks() {
		work, may := r.options.workOf(e.Object.Name)
		if !may {
			return
		}
		e.Work = work
	}
	if r.memory.expects(e) {
		return
	}
	if e.NewKind {
		r.retries.Forget(e.Work)
		r.memory.of(e.Work).forgetPlan()
	}
	work := &placementv1beta1.Work{}
	work.Namespace, work.Name = r.options.HubNamespace, e.Work
	select {
	case r.touched <- event.GenericEvent{Object: work}:
	case <-ctx.Done():
	}
}

// Reconcile brings one Work to the member.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, request)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: firstErrorRetry}, nil // routine: somebody else wrote first
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
		return r.removeVanished(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting Work %q: %w", request.Name, err)
	}
	memory := r.memory.of(work.Name)
	if memory.isBehind(work.ResourceVersion, r.options.Clock.Now()) {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	if failing := memory.fails(work.Generation) || memory.isNew(work.Generation) && wasRefused(work); failing {
		if !r.slow.enter() {
			return reconcile.Result{RequeueAfter: r.turns.When(work.Name), Priority: ptr.To(retryPriority)}, nil
		}
		defer r.slow.leave()
		r.turns.Forget(work.Name)
	}
	if work.DeletionTimestamp != nil {
		result, err := r.finalize(ctx, work)
		memory.ended(work.Generation, err == nil)
		return result, err
	}
	if err := r.ensureFinalizer(ctx, work); err != nil {
		return reconcile.Result{}, err
	}
	return r.reconcileWork(ctx, work)
}

func (r *Reconciler) writeStatus(ctx context.Context, work *placementv1beta1.Work, status placementv1beta1.WorkStatus) error {
	if sameStatus(&work.Status, &status) {
		return nil
	}
	before := work.DeepCopy()
	work.Status = status
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.hub.Status().Patch(ctx, work, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Work %q: %w", work.Name, err)
	}
	r.memory.of(work.Name).wrote(work.ResourceVersion, r.options.Clock.Now())
	return nil
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, work *placementv1beta1.Work) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return nil
	}
	if err := r.hub.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adding the finalizer to Work %q: %w", work.Name, err)
	}
	r.memory.of(work.Name).wrote(work.ResourceVersion, r.options.Clock.Now())
	return nil
}

func (r *Reconciler) forget(work string) {
	r.watcher.Follow(work, nil, nil)
	r.memory.forget(work)
	r.retries.Forget(work)
	r.turns.Forget(work)
}
