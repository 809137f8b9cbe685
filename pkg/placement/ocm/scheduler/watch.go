// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

// kinds have to be served before the first decision.
func kinds() []string {
	var all []string
	for _, plural := range []string{"placements", "placementdecisions", "addonplacementscores", "managedclusters", "managedclustersets", "managedclustersetbindings"} {
		all = append(all, plural+"."+ocmclusterv1beta1.GroupName)
	}
	return all
}

// SetupWithManager starts the controller once the hub serves all kinds that it reads, which may be
// another product's. It decides for a Placement when its spec changes, when its decisions or its
// status differ from what it wrote, or when something that it reads changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		return err
	}
	if r.metrics, err = newMetrics(r.Metrics); err != nil {
		return err
	}
	r.compiler, r.cache, r.decisions = compiler, newClusterCache(), newDecisionIndex()
	r.statuses = map[types.NamespacedName]*ocmclusterv1beta1.PlacementStatus{}
	return mgr.Add(&crdwait.Kinds{
		Manager: mgr, Names: kinds(), Then: r.start,
		Missing: "Placements get no decisions until the hub serves the required kinds",
	})
}

func (r *Reconciler) start(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&ocmclusterv1beta1.Placement{}, r.placements()).
		Watches(&ocmclusterv1beta1.PlacementDecision{}, states(r.decision)).
		Watches(&clusterv1.ManagedCluster{}, states(r.cluster)).
		Watches(&clusterv1beta2.ManagedClusterSet{}, states(r.set)).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, states(r.binding)).
		Watches(&clusterv1alpha1.AddOnPlacementScore{}, states(r.sheet)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// states passes states of objects to take, and queues the Placements that they concern. Initial
// objects trigger nothing, because all Placements are reconciled then.
func states[T client.Object](take func(object T, gone bool) []types.NamespacedName) handler.EventHandler {
	notify := func(object client.Object, gone, first bool, q queue) {
		known, ok := object.(T)
		if !ok {
			return
		}
		for _, key := range take(known, gone) {
			if !first {
				q.AddAfter(reconcile.Request{NamespacedName: key}, settle)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, q queue) { notify(e.Object, false, e.IsInInitialList, q) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q queue) { notify(e.ObjectNew, false, false, q) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q queue) { notify(e.Object, true, false, q) },
		GenericFunc: func(context.Context, event.GenericEvent, queue) {},
	}
}

// placements queues a Placement whose spec or annotations changed, or whose status differs from the
// written one.
func (r *Reconciler) placements() handler.EventHandler {
	request := func(object client.Object) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(request(e.Object)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*ocmclusterv1beta1.Placement), e.ObjectNew.(*ocmclusterv1beta1.Placement)
			switch {
			case was.Generation != is.Generation, was.UID != is.UID, isDisabled(was) != isDisabled(is), (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil):
				q.Add(request(is))
			case !r.isWritten(is):
				q.AddAfter(request(is), settle)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(request(e.Object)) },
	}
}

// isWritten is true if a Placement's status is the last written one.
func (r *Reconciler) isWritten(placement *ocmclusterv1beta1.Placement) bool {
	r.statusMu.Lock()
	defer r.statusMu.Unlock()
	written := r.statuses[client.ObjectKeyFromObject(placement)]
	return written != nil && equality.Semantic.DeepEqual(*written, placement.Status)
}

func (r *Reconciler) decision(decision *ocmclusterv1beta1.PlacementDecision, gone bool) []types.NamespacedName {
	return r.decisions.see(decision, gone)
}

func (r *Reconciler) cluster(cluster *clusterv1.ManagedCluster, gone bool) []types.NamespacedName {
	if gone {
		return r.cache.concernedBy(r.cache.removeCluster(cluster.Name), nil)
	}
	return r.cache.concernedBy(r.cache.setCluster(cluster))
}

func (r *Reconciler) set(set *clusterv1beta2.ManagedClusterSet, gone bool) []types.NamespacedName {
	state := set
	if gone {
		state = nil
	}
	if !r.cache.setSet(set.Name, state) {
		return nil
	}
	return r.cache.concernedBySet(set.Name, "")
}

func (r *Reconciler) binding(binding *clusterv1beta2.ManagedClusterSetBinding, gone bool) []types.NamespacedName {
	if !r.cache.setBinding(binding.Namespace, binding.Name, !gone) {
		return nil
	}
	return r.cache.concernedBySet(binding.Name, binding.Namespace)
}

func (r *Reconciler) sheet(score *clusterv1alpha1.AddOnPlacementScore, gone bool) []types.NamespacedName {
	state := score
	if gone {
		state = nil
	}
	was, is := r.cache.setSheet(score.Namespace, score.Name, state)
	return r.cache.concernedBySheet(score.Namespace, score.Name, was, is, r.Clock.Now())
}
