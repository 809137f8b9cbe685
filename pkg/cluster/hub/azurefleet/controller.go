// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package azurefleet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

const (
	// ControllerName is the name of Reconciler.
	ControllerName = "membercluster.azurefleet"
	// EventSource is the source of events.
	EventSource = "memberCluster"
)

// Reconciler manages the MemberClusters of the current group for those of the first group.
type Reconciler struct {
	// Client reads both groups, from a cache if it has one, and writes them.
	Client   client.Client
	Recorder events.EventRecorder
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the specs of the first group's MemberClusters, and all MemberClusters that
// were created for them.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&azurefleetv1alpha1.MemberCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&clusterv1beta1.MemberCluster{}).
		Complete(reconcileutil.RetryConflicts(r))
}

// Reconcile copies one MemberCluster between its two groups.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var shown azurefleetv1alpha1.MemberCluster
	if err := r.Client.Get(ctx, req.NamespacedName, &shown); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !shown.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.reconcile(ctx, &shown))
}

func (r *Reconciler) reconcile(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster) error {
	mc, err := r.ensureMember(ctx, shown)
	if err != nil {
		return err
	}
	if err := r.ensureInternal(ctx, shown, mc); err != nil {
		return err
	}
	return r.writeStatus(ctx, shown, mc)
}

// ensureMember returns the MemberCluster of the current group; nil if there is none.
func (r *Reconciler) ensureMember(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster) (*clusterv1beta1.MemberCluster, error) {
	mc := &clusterv1beta1.MemberCluster{}
	found, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: shown.Name}, mc, "reading MemberCluster %q", shown.Name)
	if err != nil {
		return nil, err
	}
	wanted := shown.Spec.State == azurefleetv1alpha1.ClusterStateJoin
	switch {
	case !found && !wanted:
		return nil, nil
	case !found:
		return r.createMember(ctx, shown)
	case !metav1.IsControlledBy(mc, shown) || !mc.DeletionTimestamp.IsZero():
		return mc, nil
	case !wanted:
		return mc, r.deleteMember(ctx, shown, mc)
	default:
		return mc, r.updateMember(ctx, shown, mc)
	}
}

func (r *Reconciler) createMember(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster) (*clusterv1beta1.MemberCluster, error) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: shown.Name, Labels: shown.Labels}}
	mc.Spec.Identity, mc.Spec.HeartbeatPeriodSeconds = shown.Spec.Identity, shown.Spec.LeaseDurationSeconds
	if err := controllerutil.SetControllerReference(shown, mc, r.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("preparing MemberCluster %q: %w", mc.Name, err)
	}
	if err := r.Client.Create(ctx, mc); err != nil {
		return nil, fmt.Errorf("creating MemberCluster %q: %w", mc.Name, err)
	}
	return mc, nil
}

func (r *Reconciler) updateMember(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster, mc *clusterv1beta1.MemberCluster) error {
	return reconcileutil.Patch(ctx, r.Client, mc, func() {
		mc.Spec.Identity, mc.Spec.HeartbeatPeriodSeconds = shown.Spec.Identity, shown.Spec.LeaseDurationSeconds
	}, "updating MemberCluster %q", mc.Name)
}

func (r *Reconciler) deleteMember(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster, mc *clusterv1beta1.MemberCluster) error {
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, mc, client.Preconditions{UID: &mc.UID})); err != nil {
		return fmt.Errorf("deleting MemberCluster %q: %w", mc.Name, err)
	}
	r.event(shown, "InternalMemberClusterSpecUpdated", "internal member cluster spec is marked as Leave")
	return nil
}

// ensureInternal maintains the copy for users in the member's namespace. It is deleted with the
// namespace.
func (r *Reconciler) ensureInternal(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster, mc *clusterv1beta1.MemberCluster) error {
	if mc == nil || !metav1.IsControlledBy(mc, shown) || !mc.DeletionTimestamp.IsZero() ||
		!meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1beta1.ConditionReadyToJoin) {
		return nil
	}
	internal := &azurefleetv1alpha1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(shown.Name), Name: shown.Name,
	}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, internal, func() error {
		internal.Spec = azurefleetv1alpha1.InternalMemberClusterSpec{State: shown.Spec.State, LeaseDurationSeconds: shown.Spec.LeaseDurationSeconds}
		return controllerutil.SetControllerReference(shown, internal, r.Client.Scheme())
	})
	if err != nil {
		return fmt.Errorf("writing InternalMemberCluster %q: %w", shown.Name, err)
	}
	if result == controllerutil.OperationResultCreated {
		r.event(shown, "NamespaceCreated", "Namespace was created")
		r.event(shown, "InternalMemberClusterCreated", "Internal member cluster was created")
		r.event(shown, "RoleCreated", "role was created")
		r.event(shown, "RoleBindingCreated", "role binding was created")
	}
	base := internal.DeepCopy()
	err = reconcileutil.PatchStatus(ctx, r.Client, internal, func() {
		internal.Status = desiredInternalStatus(internal, mc)
	}, "writing the status of InternalMemberCluster %q", shown.Name)
	if err != nil {
		return err
	}
	for _, condition := range internal.Status.Conditions {
		if condition.Status == metav1.ConditionTrue && condition.Type != azurefleetv1alpha1.ConditionSynced &&
			!meta.IsStatusConditionTrue(base.Status.Conditions, condition.Type) {
			r.event(internal, condition.Reason, condition.Message)
		}
	}
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, shown *azurefleetv1alpha1.MemberCluster, mc *clusterv1beta1.MemberCluster) error {
	base := shown.DeepCopy()
	err := reconcileutil.PatchStatus(ctx, r.Client, shown, func() { shown.Status = desiredStatus(shown, mc) }, "writing the status of MemberCluster %q", shown.Name)
	if err != nil {
		return err
	}
	before := meta.FindStatusCondition(base.Status.Conditions, azurefleetv1alpha1.ConditionJoined)
	after := meta.FindStatusCondition(shown.Status.Conditions, azurefleetv1alpha1.ConditionJoined)
	if before != nil && before.Reason == after.Reason {
		return nil
	}
	switch after.Reason {
	case azurefleetv1alpha1.ReasonJoined:
		r.event(shown, after.Reason, "member cluster is joined")
	case azurefleetv1alpha1.ReasonLeft:
		r.event(shown, "NamespaceDeleted", "namespace is deleted for member cluster")
		r.event(shown, after.Reason, "member cluster has left")
	}
	return nil
}

func (r *Reconciler) event(about client.Object, reason, message string) {
	r.Recorder.Eventf(about, nil, corev1.EventTypeNormal, reason, "Show", "%s", message)
}
