// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Names of the controllers.
const (
	Name        = "managedclusterset.status"
	BindingName = "managedclustersetbinding.bound"
)

const (
	// apart is the minimum interval between writes of statuses.
	apart = time.Second
)

// Reconciler maintains all sets: one request stands for all of them.
type Reconciler struct {
	// Client writes; it reads from a cache if it has one.
	Client client.Client
	// Clock tells the time.
	Clock clock.PassiveClock

	// wrote is when statuses were written last. Only one worker uses it.
	wrote time.Time
}

// SetupWithManager watches sets, and the labels of ManagedClusters. It also reconciles once at its
// start, because a hub may have neither.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	start := make(chan event.GenericEvent, 1)
	start <- event.GenericEvent{Object: &clusterv1beta2.ManagedClusterSet{}}
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&clusterv1beta2.ManagedClusterSet{}, all).
		Watches(&clusterv1.ManagedCluster{}, all, builder.WithPredicates(labelsChanged())).
		WatchesRawSource(source.Channel(start, all)).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if left := r.wrote.Add(apart).Sub(r.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.reconcile(ctx))
}

func (r *Reconciler) reconcile(ctx context.Context) error {
	sets, clusters := &clusterv1beta2.ManagedClusterSetList{}, &clusterv1.ManagedClusterList{}
	if err := r.Client.List(ctx, sets); err != nil {
		return fmt.Errorf("listing ManagedClusterSets: %w", err)
	}
	if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusters: %w", err)
	}
	failures := []error{r.ensureBuiltInSets(ctx, sets)}
	for i := range sets.Items {
		failures = append(failures, r.writeStatus(ctx, &sets.Items[i], clusters))
	}
	for i := range clusters.Items {
		failures = append(failures, r.writeNamespaces(ctx, &clusters.Items[i], sets.Items))
	}
	// Transient failures are reported first.
	for _, failure := range failures {
		if apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) {
			return failure
		}
	}
	return errors.Join(failures...)
}

// ensureBuiltInSets creates or restores the built-in sets, unless somebody opted out. Labels and other
// fields stay.
func (r *Reconciler) ensureBuiltInSets(ctx context.Context, sets *clusterv1beta2.ManagedClusterSetList) error {
	there := map[string]*clusterv1beta2.ManagedClusterSet{}
	for i := range sets.Items {
		there[sets.Items[i].Name] = &sets.Items[i]
	}
	for _, wanted := range builtInSets() {
		live := there[wanted.Name]
		switch {
		case live == nil:
			if err := r.Client.Create(ctx, wanted); err != nil {
				return fmt.Errorf("creating ManagedClusterSet %q: %w", wanted.Name, err)
			}
		case live.DeletionTimestamp == nil && live.Annotations[clusterv1beta2.AutoUpdateAnnotation] != "false" &&
			!equality.Semantic.DeepEqual(live.Spec.ClusterSelector, wanted.Spec.ClusterSelector):
			live.Spec.ClusterSelector = wanted.Spec.ClusterSelector
			if err := r.Client.Update(ctx, live); err != nil {
				return fmt.Errorf("giving ManagedClusterSet %q its clusters back: %w", wanted.Name, err)
			}
		}
	}
	return nil
}

// writeStatus writes the number of clusters of a set, if it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, set *clusterv1beta2.ManagedClusterSet, clusters *clusterv1.ManagedClusterList) error {
	selector, err := Members(set)
	if err != nil {
		// The set's author made an error: the set counts as empty, with the reason in its status.
		selector = labels.Nothing()
	}
	count := 0
	for i := range clusters.Items {
		if selector.Matches(labels.Set(clusters.Items[i].Labels)) {
			count++
		}
	}
	condition := emptyCondition(count)
	if err != nil {
		condition.Message = err.Error()
	}
	return client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Client, set, func() {
		if set.DeletionTimestamp == nil && meta.SetStatusCondition(&set.Status.Conditions, condition) {
			r.wrote = r.Clock.Now()
		}
	}, "writing the status of ManagedClusterSet %q", set.Name))
}

// BindingReconciler reports on bindings whether their sets exist.
type BindingReconciler struct {
	// Client writes; it reads from a cache if it has one.
	Client client.Client
}

// SetupWithManager watches bindings, and creations and deletions of sets.
func (r *BindingReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(BindingName, ctrl.NewControllerManagedBy(mgr).
		Named(BindingName).
		For(&clusterv1beta2.ManagedClusterSetBinding{}).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.bindingsOf), builder.WithPredicates(exceptUpdates())).
		Complete(reconcileutil.RetryConflicts(r)))
}

func (r *BindingReconciler) bindingsOf(ctx context.Context, set client.Object) []reconcile.Request {
	names := func(binding *clusterv1beta2.ManagedClusterSetBinding) bool {
		return binding.Spec.ClusterSet == set.GetName()
	}
	return enqueue.Those(ctx, r.Client, &clusterv1beta2.ManagedClusterSetBindingList{}, names)
}

// labelsChanged accepts creations and deletions of clusters, and updates that may change their
// sets.
func labelsChanged() predicate.Predicate {
	return enqueue.Updates(func(before, after client.Object) bool { return !maps.Equal(before.GetLabels(), after.GetLabels()) })
}

// exceptUpdates ignores updates.
func exceptUpdates() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// Reconcile implements reconcile.Reconciler.
func (r *BindingReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	if err := r.Client.Get(ctx, req.NamespacedName, binding); err != nil || binding.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.Client.Get(ctx, client.ObjectKey{Name: binding.Spec.ClusterSet}, &clusterv1beta2.ManagedClusterSet{})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading ManagedClusterSet %q: %w", binding.Spec.ClusterSet, err)
	}
	base := binding.DeepCopy()
	if !meta.SetStatusCondition(&binding.Status.Conditions, boundCondition(err == nil)) {
		return ctrl.Result{}, nil
	}
	err = r.Client.Status().Patch(ctx, binding, reconcileutil.PatchFrom(base))
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, client.IgnoreNotFound(err))
}

// SetupWithManager adds the controllers of sets and their bindings.
func SetupWithManager(mgr ctrl.Manager) error {
	if err := (&Reconciler{Client: mgr.GetClient(), Clock: clock.RealClock{}}).SetupWithManager(mgr); err != nil {
		return err
	}
	return (&BindingReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
}
