// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// recheckDeletion is after what time a deletion is looked at again although the
// watch said nothing.
const recheckDeletion = 30 * time.Second

// finalize removes from the member what a deleted Work applied, and then lets
// the Work go.
func (r *Reconciler) finalize(ctx context.Context, work *placementv1beta1.Work) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return ctrl.Result{}, nil
	}
	membership, err := r.membership(ctx, r.hubReader)
	if err != nil {
		return ctrl.Result{}, err
	}
	if membership != "" {
		gone, err := r.removeRecord(ctx, work.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !gone {
			return ctrl.Result{RequeueAfter: recheckDeletion}, nil
		}
	}
	r.forget(work.Name)
	return ctrl.Result{}, r.removeFinalizer(ctx, work)
}

// removeVanished removes what a Work applied that is no longer on the hub: it
// went away without its finalizer being honoured, or while there was no agent.
// Only a hub that says so is believed, and only about what was applied under the
// present membership: what a member kept when it left the fleet stays when it
// joins again, until a Work of that name comes back for it.
func (r *Reconciler) removeVanished(ctx context.Context, key client.ObjectKey) error {
	r.forget(key.Name)
	record, err := r.findRecord(ctx, key.Name)
	if record == nil || err != nil {
		return err
	}
	if !r.isOurs(record) {
		return nil
	}
	err = r.hubReader.Get(ctx, key, &placementv1beta1.Work{})
	if err == nil {
		return nil // the cache was behind, it brings the Work here
	}
	if !saysNoSuchWork(err) {
		return fmt.Errorf("asking the hub whether Work %q still exists: %w", key.Name, err)
	}
	membership, err := r.membership(ctx, r.hubReader)
	if err != nil || membership == "" || membership != record.Annotations[MembershipAnnotation] {
		return err
	}
	log.FromContext(ctx).Info("Removing what a Work applied that is no longer on the hub", "Work", key.Name)
	_, err = r.removeRecord(ctx, key.Name)
	return err
}

// saysNoSuchWork tells a hub's answer that there is no such object from the 404
// of a server that does not serve Works, or is no API server at all.
func saysNoSuchWork(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// removeRecord deletes the AppliedWork and, through it, what it owns. It reports
// whether all of it is gone.
func (r *Reconciler) removeRecord(ctx context.Context, name string) (bool, error) {
	record, err := r.findRecord(ctx, name)
	if err != nil {
		return false, err
	}
	if record == nil || !r.isOurs(record) {
		return true, nil
	}
	if record.DeletionTimestamp != nil {
		return false, nil
	}
	err = r.member.Delete(ctx, record,
		client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: ptr.To(record.UID)})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("deleting AppliedWork %q on the member: %w", name, err)
	}
	return false, nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, work *placementv1beta1.Work) error {
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, placementv1beta1.WorkCleanupFinalizer)
	err := r.hub.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of Work %q: %w", work.Name, err)
	}
	return nil
}

// membership names the present membership of the member in the fleet; empty
// while it does not belong to it. A member that left and joined again has
// another one.
func (r *Reconciler) membership(ctx context.Context, hub client.Reader) (string, error) {
	member := &clusterv1beta1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: r.options.HubNamespace, Name: r.options.Member}
	err := hub.Get(ctx, key, member)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("asking the hub whether the member belongs to the fleet: %w", err)
	}
	if member.Spec.State != clusterv1beta1.ClusterStateJoin || member.DeletionTimestamp != nil {
		return "", nil
	}
	return string(member.UID), nil
}
