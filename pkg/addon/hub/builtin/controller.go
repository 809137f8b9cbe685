// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the controller's name.
const Name = "managedclusteraddon.builtin"

// Members knows the ManagedClusters of members with fleetgate's agent.
type Members interface {
	HasAgent(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error)
}

// Reconciler shows the features of members' agents as add-ons.
type Reconciler struct {
	// Client reads from a cache.
	Client  client.Client
	Members Members
	// Workers is how many clusters are reconciled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager reconciles a cluster when it, its member or the token of the gateway's account
// changes, and when somebody changes one of the add-ons.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ours := func(object client.Object) bool { return slices.Contains(names(), object.GetName()) }
	named := func(name func(client.Object) string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name(object)}}}
		})
	}
	tunnel := enqueue.Updates(func(before, after *clusterv1beta1.MemberCluster) bool {
		return hasTunnel(before) != hasTunnel(after)
	})
	gatewayAccount := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == authenticationv1beta1.GatewayAccount })
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&clusterv1.ManagedCluster{}).
		Watches(&clusterv1beta1.MemberCluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(tunnel)).
		Watches(&authenticationv1beta1.ManagedServiceAccount{}, named(func(object client.Object) string {
			member, _ := clusterv1beta1.MemberOfNamespace(object.GetNamespace())
			return member
		}), builder.WithPredicates(gatewayAccount)).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, named(client.Object.GetNamespace), builder.WithPredicates(predicate.NewPredicateFuncs(ours))).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
			return enqueue.All(ctx, r.Client, &clusterv1.ManagedClusterList{})
		}), builder.WithPredicates(predicate.NewPredicateFuncs(ours), enqueue.Updates(func(_, _ *addonv1alpha1.ClusterManagementAddOn) bool { return false }))).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

func hasTunnel(member *clusterv1beta1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTunnelConnected)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, req.NamespacedName, cluster, "reading ManagedCluster %q", req.Name)
	if !exists || cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, err // Package managedcluster deletes all add-ons of a cluster that leaves.
	}
	known, err := r.facts(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failed []error
	for _, name := range names() {
		failed = append(failed, r.reconcile(ctx, name, cluster, known))
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, errors.Join(failed...))
}

// facts is nil for a cluster that is no member, or whose namespace may still belong to
// something else.
func (r *Reconciler) facts(ctx context.Context, cluster *clusterv1.ManagedCluster) (*facts, error) {
	is, err := r.Members.HasAgent(ctx, cluster)
	if err != nil || !is || meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable) == nil {
		return nil, err
	}
	known := &facts{cluster: cluster, member: &clusterv1beta1.MemberCluster{}, account: &authenticationv1beta1.ManagedServiceAccount{}}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: cluster.Name}, known.member, "reading MemberCluster %q", cluster.Name)
	if !exists {
		return nil, err
	}
	key := client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(cluster.Name), Name: authenticationv1beta1.GatewayAccount}
	if exists, err = reconcileutil.GetIfExists(ctx, r.Client, key, known.account, "reading ManagedServiceAccount %s", key); !exists {
		known.account = nil
	}
	return known, err
}

func (r *Reconciler) reconcile(ctx context.Context, name string, cluster *clusterv1.ManagedCluster, known *facts) error {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	key := client.ObjectKey{Namespace: cluster.Name, Name: name}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, key, addOn, "reading ManagedClusterAddOn %s", key)
	if err != nil {
		return err
	}
	replaced, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: name}, &addonv1alpha1.ClusterManagementAddOn{}, "reading ClusterManagementAddOn %q", name)
	if err != nil {
		return err
	}
	switch {
	case exists && addOn.Labels[addonv1alpha1.BuiltInLabel] == "":
		return nil
	case known == nil || replaced:
		if !exists {
			return nil
		}
		return r.remove(ctx, addOn)
	case !exists:
		addOn.ObjectMeta = metav1.ObjectMeta{Namespace: cluster.Name, Name: name, Labels: map[string]string{addonv1alpha1.BuiltInLabel: "true"}}
		switch err := r.Client.Create(ctx, addOn); {
		case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // The cluster is about to leave.
		case err != nil:
			return fmt.Errorf("creating ManagedClusterAddOn %s: %w", key, err)
		}
	case addOn.DeletionTimestamp != nil:
		return nil
	}
	if name == managedServiceAccount {
		if err := r.assign(ctx, cluster.Name); err != nil {
			return err
		}
	}
	return reconcileutil.PatchStatus(ctx, r.Client, addOn, func() {
		known.desiredStatus(&addOn.Status, name)
	}, "writing the status of ManagedClusterAddOn %s", key)
}

// remove deletes an add-on that the agent does not provide.
func (r *Reconciler) remove(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if addOn.Name == managedServiceAccount {
		if err := r.withdraw(ctx, addOn.Namespace); err != nil {
			return err
		}
	}
	if err := r.Client.Delete(ctx, addOn, client.Preconditions{UID: &addOn.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ManagedClusterAddOn %s/%s, which the agent does not provide: %w", addOn.Namespace, addOn.Name, err)
	}
	return nil
}
