// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// ControllerName is the name of the controller that Reconciler is.
const ControllerName = "membercluster.profile"

// Reconciler publishes members as ClusterProfiles.
type Reconciler struct {
	// Client reads MemberClusters and ClusterProfiles, from a cache if it has one, and writes
	// ClusterProfiles.
	Client client.Client
	// Namespace is where the profiles are.
	Namespace string
	// Manager is the cluster manager in the profiles. If unset,
	// multiclusterv1alpha1.ClusterManager.
	Manager string
	// HubURL and HubCA (PEM) are how clients reach the hub.
	HubURL string
	HubCA  []byte
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the fields of MemberClusters that profiles show, and the profiles.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == r.Namespace })
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&clusterv1beta1.MemberCluster{}, builder.WithPredicates(shownChanged())).
		Watches(&multiclusterv1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(memberOfProfile), builder.WithPredicates(ours)).
		Complete(reconcileutil.RetryConflicts(r))
}

func memberOfProfile(_ context.Context, profile client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: profile.GetName()}}}
}

// shownChanged ignores heartbeats.
func shownChanged() predicate.Predicate {
	return enqueue.Updates(func(before, after *clusterv1beta1.MemberCluster) bool {
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() || !equality.Semantic.DeepEqual(shownOf(before), shownOf(after))
	})
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.reconcile(ctx, &mc))
}

func (r *Reconciler) reconcile(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	profile := &multiclusterv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: mc.Name}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(profile), profile)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ClusterProfile %q: %w", mc.Name, err)
	}
	missing := err != nil
	foreign := !missing && profile.Spec.ClusterManager.Name != r.manager()
	if !mc.DeletionTimestamp.IsZero() {
		return r.withdraw(ctx, mc, profile, missing || foreign)
	}
	if foreign {
		log.FromContext(ctx).Info("A ClusterProfile of another manager has the member's name; the member is not published", "manager", profile.Spec.ClusterManager.Name)
		return nil
	}
	if missing && mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent) == nil {
		return nil // It is published once its agent has reported, which is an event.
	}
	if err := r.ensure(ctx, mc, profile, missing); err != nil {
		return err
	}
	return r.writeStatus(ctx, mc, profile)
}

// withdraw deletes the profile of a leaving member, if it is ours, and removes the finalizer with
// which another product made a MemberCluster wait for that.
func (r *Reconciler) withdraw(ctx context.Context, mc *clusterv1beta1.MemberCluster, profile *multiclusterv1alpha1.ClusterProfile, unpublished bool) error {
	if !unpublished && profile.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, profile)); err != nil {
			return fmt.Errorf("deleting ClusterProfile %q: %w", profile.Name, err)
		}
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, mc, clusterv1beta1.ClusterProfileFinalizer, "releasing MemberCluster %q", mc.Name)
}

func (r *Reconciler) ensure(ctx context.Context, mc *clusterv1beta1.MemberCluster, profile *multiclusterv1alpha1.ClusterProfile, missing bool) error {
	base := profile.DeepCopy()
	if err := publishLabels(profile, mc); err != nil {
		return err
	}
	metav1.SetMetaDataLabel(&profile.ObjectMeta, multiclusterv1alpha1.LabelClusterManager, r.manager())
	profile.Spec.DisplayName = mc.Name
	profile.Spec.ClusterManager.Name = r.manager()
	if err := controllerutil.SetControllerReference(mc, profile, r.Client.Scheme()); err != nil {
		return fmt.Errorf("preparing ClusterProfile %q: %w", profile.Name, err)
	}
	if missing {
		if err := r.Client.Create(ctx, profile); err != nil {
			return fmt.Errorf("creating ClusterProfile %q: %w", profile.Name, err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(base, profile) {
		return nil
	}
	if err := r.Client.Patch(ctx, profile, reconcileutil.PatchFrom(base)); err != nil {
		return fmt.Errorf("updating ClusterProfile %q: %w", profile.Name, err)
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, mc *clusterv1beta1.MemberCluster, profile *multiclusterv1alpha1.ClusterProfile) error {
	provider, err := accessProvider(mc.Name, r.HubURL, r.HubCA)
	if err != nil {
		return err
	}
	return reconcileutil.PatchStatus(ctx, r.Client, profile, func() {
		profile.Status = desiredStatus(profile.Status, mc, provider, publishedIn(profile).Properties, profile.Generation)
	}, "writing the status of ClusterProfile %q", profile.Name)
}

func (r *Reconciler) manager() string {
	if r.Manager == "" {
		return multiclusterv1alpha1.ClusterManager
	}
	return r.Manager
}
