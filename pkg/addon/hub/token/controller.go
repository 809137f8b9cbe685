// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Name is the controller's name.
const Name = "managedclusteraddon.token"

// nameTakenRetry is the pause before the hub checks again whether a foreign object still has the name
// of an account or Role. Such objects are not watched.
const nameTakenRetry = time.Minute

// Reconciler maintains the accounts of add-ons.
type Reconciler struct {
	// Client writes, and reads add-ons and clusters from a cache.
	Client client.Client
	// Objects is a cache from NewCache.
	Objects cache.Cache
	// Live reads objects without our labels, which Objects does not have.
	Live client.Reader
	// Agents are the users of a cluster that may request tokens.
	Agents func(context.Context, *clusterv1.ManagedCluster) ([]rbacv1.Subject, error)
	// Workers is how many add-ons are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// NewCache returns a cache of the objects that this package creates. The caller adds it to its
// manager.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	options.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{addonv1alpha1.TokenInfrastructureLabel: "true"})
	objects, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of the accounts of add-ons: %w", err)
	}
	return objects, nil
}

// SetupWithManager reconciles an add-on when its driver, the acceptance of its cluster or one of the
// created objects changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	relevant := enqueue.Updates(func(before, after *addonv1alpha1.ManagedClusterAddOn) bool {
		was, is := conditionOf(before), conditionOf(after)
		return usesTokens(before) != usesTokens(after) || (was == nil) != (is == nil) || was != nil && (was.Status != is.Status || was.Message != is.Message)
	})
	accepted := enqueue.Updates(func(before, after *clusterv1.ManagedCluster) bool {
		return objects.IsAccepted(before) != objects.IsAccepted(after)
	})
	ours := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: addOnOf(object)}}
	})
	builder := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(relevant)).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
			return enqueue.All(ctx, r.Client, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster.GetName()))
		}), builder.WithPredicates(accepted)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers})
	for _, kind := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		builder = builder.WatchesRawSource(source.Kind(r.Objects, kind, ours))
	}
	return reconcileutil.SetupError(Name, builder.Complete(reconcileutil.RetryConflicts(r)))
}

func conditionOf(addOn *addonv1alpha1.ManagedClusterAddOn) *metav1.Condition {
	return meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == "" || req.Namespace == "" {
		return ctrl.Result{}, nil // An object has lost the label with the name of its add-on.
	}
	result, err := r.reconcile(ctx, req.NamespacedName)
	return reconcileutil.RequeueOnConflict(result, client.IgnoreNotFound(err))
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, key, addOn, "reading ManagedClusterAddOn %s", key)
	if err != nil {
		return ctrl.Result{}, err
	}
	cluster := &clusterv1.ManagedCluster{}
	if exists && usesTokens(addOn) {
		if _, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: key.Namespace}, cluster, "reading ManagedCluster %q", key.Namespace); err != nil {
			return ctrl.Result{}, err
		}
	}
	if objects.IsAccepted(cluster) {
		return r.ensure(ctx, addOn, cluster)
	}
	if err := r.remove(ctx, key); err != nil || !exists {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		meta.RemoveStatusCondition(&addOn.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
	}, "removing the account from the status of ManagedClusterAddOn %s", key)
}

func (r *Reconciler) ensure(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, cluster *clusterv1.ManagedCluster) (ctrl.Result, error) {
	key := client.ObjectKeyFromObject(addOn)
	agents, err := r.Agents(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the agents of ManagedCluster %q: %w", cluster.Name, err)
	}
	var account client.Object
	for _, desired := range objectsFor(key, agents) {
		live, err := r.apply(ctx, desired, key)
		if refused := refusal.Of(err); refused != nil {
			// Nobody may get tokens of another account of the name.
			return ctrl.Result{RequeueAfter: nameTakenRetry}, errors.Join(r.remove(ctx, key), r.report(ctx, addOn, failed(refused.Message)))
		}
		switch {
		case apierrors.IsConflict(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return ctrl.Result{}, err
		case err != nil:
			return ctrl.Result{}, errors.Join(err, r.report(ctx, addOn, failed(err.Error())))
		case account == nil:
			account = live
		}
	}
	return ctrl.Result{}, r.report(ctx, addOn, ready(account))
}

func (r *Reconciler) report(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, condition metav1.Condition) error {
	return reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		meta.SetStatusCondition(&addOn.Status.Conditions, condition)
	}, "writing the account into the status of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}

// apply creates an object of an add-on or reverts changes, and returns it.
func (r *Reconciler) apply(ctx context.Context, desired client.Object, addOn types.NamespacedName) (client.Object, error) {
	key := client.ObjectKeyFromObject(desired)
	existing := desired.DeepCopyObject().(client.Object)
	exists, err := reconcileutil.GetIfExists(ctx, r.Objects, key, existing, "reading %s", nameOf(desired))
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return r.create(ctx, desired, addOn)
	case !isOurs(existing, addOn):
		return nil, taken(desired)
	case refersElsewhere(existing, desired):
		if err := r.delete(ctx, existing); err != nil {
			return nil, err
		}
		return r.create(ctx, desired, addOn)
	}
	return existing, reconcileutil.Patch(ctx, r.Client, existing, func() { revert(existing, desired) }, "reverting %s", nameOf(desired))
}

func (r *Reconciler) create(ctx context.Context, desired client.Object, addOn types.NamespacedName) (client.Object, error) {
	key := client.ObjectKeyFromObject(desired)
	err := r.Client.Create(ctx, desired)
	if err == nil {
		return desired, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating %s: %w", nameOf(desired), err)
	}
	// Either the cache does not have it yet, or it has no label of ours.
	existing := desired.DeepCopyObject().(client.Object)
	if err := r.Live.Get(ctx, key, existing); err != nil {
		return nil, fmt.Errorf("reading %s: %w", nameOf(desired), err)
	}
	if !isOurs(existing, addOn) {
		return nil, taken(desired)
	}
	return nil, apierrors.NewConflict(schema.GroupResource{}, key.String(), err)
}

// remove deletes what was created for an add-on, which ends the tokens.
func (r *Reconciler) remove(ctx context.Context, addOn types.NamespacedName) error {
	objects := objectsFor(addOn, nil)
	for _, object := range slices.Backward(objects) {
		exists, err := reconcileutil.GetIfExists(ctx, r.Objects, client.ObjectKeyFromObject(object), object, "reading %s", nameOf(object))
		if err != nil {
			return err
		}
		if !exists || !isOurs(object, addOn) {
			continue
		}
		if err := r.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	uid := object.GetUID()
	if err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", nameOf(object), err)
	}
	return nil
}
