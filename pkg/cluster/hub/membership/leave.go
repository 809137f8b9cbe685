// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// ordersPerPage limits the orders whose metadata is in memory at a time.
const ordersPerPage = 200

// leave cleans up after a deleted MemberCluster. It asks the agent to leave, waits until it has left or
// the time is over, and then removes its rights, the finalizers of its orders and its namespace. Placed
// resources stay on the member.
func (r *Reconciler) leave(ctx context.Context, mc *clusterv1beta1.MemberCluster) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(mc, clusterv1beta1.MemberClusterFinalizer) {
		return ctrl.Result{}, nil
	}
	namespace, err := r.ownNamespace(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeReadyToJoin(ctx, mc, notReadyToJoin(namespace)); err != nil {
		return ctrl.Result{}, err
	}
	if namespace == nil {
		return ctrl.Result{}, r.finalize(ctx, mc)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return r.finishDeletion(ctx, namespace)
	}
	wait, err := r.askToLeave(ctx, mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err := r.revoke(ctx, mc); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.releaseOrders(ctx, namespace.Name); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.delete(ctx, namespace)
}

// leaveNamespace completes the deletion of the namespace of a MemberCluster that is gone before it, because
// a user removed its finalizers. Orders would keep the namespace if no agent carries them out, or the
// agent has lost its rights there.
func (r *Reconciler) leaveNamespace(ctx context.Context, member string) (ctrl.Result, error) {
	var namespace corev1.Namespace
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Name: r.Seats.Namespace(member)}, &namespace, "reading the namespace of member %q", member)
	if !found || namespace.DeletionTimestamp.IsZero() || !isOfMember(&namespace, member) {
		return ctrl.Result{}, err
	}
	return r.finishDeletion(ctx, &namespace)
}

// isOfMember reports whether a MemberCluster of that name created the namespace.
func isOfMember(namespace *corev1.Namespace, member string) bool {
	owner := metav1.GetControllerOf(namespace)
	return owner != nil && owner.Kind == "MemberCluster" && owner.Name == member
}

// finishDeletion removes what keeps a namespace that is being deleted.
func (r *Reconciler) finishDeletion(ctx context.Context, namespace *corev1.Namespace) (ctrl.Result, error) {
	if err := r.releaseOrders(ctx, namespace.Name); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: terminatingPoll}, nil
}

// terminatingPoll is the interval at which orders are checked that block the deletion of a namespace:
// another writer may have created one after the first check. The completed deletion is a watch event.
const terminatingPoll = 5 * time.Second

// pendingPoll is the interval at which an agent's cleanup is checked before it is asked to leave.
const pendingPoll = 2 * time.Second

// notReadyToJoin names what blocks the deletion of the member's namespace, as far as the hub's
// namespace controller reports it. The namespace is nil if it is deleted.
func notReadyToJoin(namespace *corev1.Namespace) metav1.Condition {
	condition := metav1.Condition{
		Type:    clusterv1beta1.ConditionReadyToJoin,
		Status:  metav1.ConditionFalse,
		Reason:  clusterv1beta1.ReasonMemberClusterNotReadyToJoin,
		Message: "the member is leaving",
	}
	if namespace == nil {
		return condition
	}
	for _, remaining := range namespace.Status.Conditions {
		if remaining.Type == corev1.NamespaceFinalizersRemaining && remaining.Status == corev1.ConditionTrue {
			condition.Message = fmt.Sprintf("the member is leaving, and namespace %q waits for others: %s", namespace.Name, remaining.Message)
		}
	}
	condition.Message = untrusted.Truncate(condition.Message, maxMessageLength)
	return condition
}

// ownNamespace returns the member's namespace, or nil if this MemberCluster created none. Other owners'
// namespaces are not touched.
func (r *Reconciler) ownNamespace(ctx context.Context, mc *clusterv1beta1.MemberCluster) (*corev1.Namespace, error) {
	if refuseName(r.Seats, mc.Name) != nil {
		//lint:ignore nilerr A member that was refused has none.
		return nil, nil
	}
	var namespace corev1.Namespace
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Name: r.Seats.Namespace(mc.Name)}, &namespace, "reading the namespace of member %q", mc.Name)
	if !found || !metav1.IsControlledBy(&namespace, mc) {
		return nil, err
	}
	return &namespace, nil
}

// askToLeave requests the agent to leave, and returns how long to wait for it; zero means not to wait.
func (r *Reconciler) askToLeave(ctx context.Context, mc *clusterv1beta1.MemberCluster) (time.Duration, error) {
	imc := &clusterv1beta1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: r.Seats.Namespace(mc.Name), Name: mc.Name}
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, key, imc, "reading the InternalMemberCluster of member %q", mc.Name); !found {
		return 0, err
	}
	if wait, err := r.pendingWait(ctx, mc, imc); wait > 0 || err != nil {
		return wait, err
	}
	if imc.Spec.State != clusterv1beta1.ClusterStateLeave && imc.DeletionTimestamp.IsZero() {
		imc.Spec.State = clusterv1beta1.ClusterStateLeave
		if err := r.Client.Update(ctx, imc); err != nil {
			return 0, fmt.Errorf("asking member %q to leave: %w", mc.Name, err)
		}
		r.Recorder.Eventf(mc, nil, corev1.EventTypeNormal, clusterv1beta1.EventInternalMemberClusterSpecUpdated, "Leave",
			"Asked the member's agent to leave")
	}
	wait := leaveWait(imc, mc.DeletionTimestamp.Time, r.Clock.Now(), r.forceDeleteWait())
	if isGone(mc) {
		wait = 0
	}
	if wait <= 0 && !hasLeft(imc) {
		log.FromContext(ctx).Info("Removing a member whose agent is gone, has not left in time or has never reported")
	}
	return wait, nil
}

// pendingWait is how long to wait before the agent is asked to leave, because it could not clean up
// afterwards.
func (r *Reconciler) pendingWait(ctx context.Context, mc *clusterv1beta1.MemberCluster, imc *clusterv1beta1.InternalMemberCluster) (time.Duration, error) {
	left := leaveWait(imc, mc.DeletionTimestamp.Time, r.Clock.Now(), r.forceDeleteWait())
	if r.Pending == nil || left <= 0 || isGone(mc) || imc.Spec.State == clusterv1beta1.ClusterStateLeave {
		return 0, nil
	}
	pending, err := r.Pending(ctx, mc.Name)
	if err != nil {
		return 0, fmt.Errorf("asking what the agent of member %q has to clean up: %w", mc.Name, err)
	}
	if pending == "" {
		return 0, nil
	}
	log.FromContext(ctx).V(1).Info("Waiting before asking the agent to leave: " + pending)
	return min(left, pendingPoll), nil
}

// leaveWait is the remaining time for an agent to leave. The hub does not wait for an agent that never
// reported.
func leaveWait(imc *clusterv1beta1.InternalMemberCluster, deleted, now time.Time, limit time.Duration) time.Duration {
	if hasLeft(imc) || len(imc.Status.AgentStatus) == 0 {
		return 0
	}
	return max(0, limit-now.Sub(deleted))
}

// isGone reports whether an administrator declared the agent gone.
func isGone(mc client.Object) bool {
	return mc.GetAnnotations()[clusterv1beta1.AnnotationGone] == "true"
}

func hasLeft(imc *clusterv1beta1.InternalMemberCluster) bool {
	agent := imc.Status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if agent == nil {
		return false
	}
	joined := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionJoined)
	return joined != nil && joined.Status == metav1.ConditionFalse && joined.ObservedGeneration >= imc.Generation
}

func (r *Reconciler) forceDeleteWait() time.Duration {
	return cmp.Or(r.ForceDeleteWait, DefaultForceDeleteWait)
}

// revoke invalidates every token and right of the member before its orders are deleted. A remaining
// agent must not see the deletion, because it would delete what it applied.
func (r *Reconciler) revoke(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	for _, obj := range []client.Object{
		&rbacv1.RoleBinding{ObjectMeta: r.objectMeta(mc.Name, clusterv1beta1.RoleBindingName(mc.Name))},
		&corev1.Secret{ObjectMeta: r.objectMeta(mc.Name, r.Seats.Credential)},
		&corev1.ServiceAccount{ObjectMeta: r.objectMeta(mc.Name, r.Seats.Account)},
	} {
		if err := r.delete(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// releaseOrders removes the finalizers of a member's orders, which its agent would have removed after
// the cleanup.
func (r *Reconciler) releaseOrders(ctx context.Context, namespace string) error {
	for _, kind := range r.Orders {
		if err := r.releaseKind(ctx, kind, namespace); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) releaseKind(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(ordersPerPage)}
	for {
		err := r.Live.List(ctx, list, append(options, client.Continue(list.Continue))...)
		if meta.IsNoMatchError(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing the %ss in namespace %q: %w", kind.Kind, namespace, err)
		}
		for i := range list.Items {
			if err := r.release(ctx, kind, &list.Items[i]); err != nil {
				return err
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}

func (r *Reconciler) release(ctx context.Context, kind schema.GroupVersionKind, order *metav1.PartialObjectMetadata) error {
	if len(order.Finalizers) == 0 {
		return nil
	}
	order.SetGroupVersionKind(kind)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, order, patch)); err != nil {
		return fmt.Errorf("releasing %s %q in namespace %q: %w", kind.Kind, order.Name, order.Namespace, err)
	}
	return nil
}

// finalize removes objects outside of the namespace, and the MemberCluster's finalizer.
func (r *Reconciler) finalize(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	if err := r.removeClusterRights(ctx, mc); err != nil {
		return err
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, mc, clusterv1beta1.MemberClusterFinalizer, "removing the finalizer of MemberCluster %q", mc.Name)
}

// removeClusterRights removes the member's ClusterRole and its binding, if they exist.
func (r *Reconciler) removeClusterRights(ctx context.Context, mc *clusterv1beta1.MemberCluster) error {
	for _, obj := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(mc.Name)}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ClusterRoleName(mc.Name)}},
	} {
		if err := r.deleteOwned(ctx, mc, obj); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) deleteOwned(ctx context.Context, mc *clusterv1beta1.MemberCluster, obj client.Object) error {
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(obj), obj, "reading %s", describe(obj))
	if !found || !metav1.IsControlledBy(obj, mc) {
		return err
	}
	return r.delete(ctx, obj)
}

func (r *Reconciler) delete(ctx context.Context, obj client.Object) error {
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, obj)); err != nil {
		return fmt.Errorf("deleting %s: %w", describe(obj), err)
	}
	return nil
}
