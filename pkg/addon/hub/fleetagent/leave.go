// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// finalize lets the member leave while its agent runs, then deletes the agent, and then releases the
// add-on. An agent that still had its rights when its objects are deleted could delete what it applied.
func (r *Reconciler) finalize(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if !controllerutil.ContainsFinalizer(addOn, addonv1alpha1.CleanupFinalizer) {
		return nil
	}
	remaining, err := r.remove(ctx, addOn.Namespace)
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Client, client.ObjectKey{Name: addOn.Namespace}, cluster, "reading ManagedCluster %q", addOn.Namespace)
	if err != nil {
		return err
	}
	if remaining != "" {
		return r.report(ctx, addOn, &facts{cluster: cluster, refused: refusal.New(addonv1alpha1.ReasonAgentLeaving, "%s", remaining)})
	}
	if exists {
		if err := r.mark(ctx, cluster, ""); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return reconcileutil.RemoveFinalizer(ctx, r.Client, addOn, addonv1alpha1.CleanupFinalizer, "removing the finalizer of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
}

// remove deletes the next object of a cluster, and returns what is awaited, or nothing.
func (r *Reconciler) remove(ctx context.Context, name string) (string, error) {
	fleet, err := r.clusterOf(ctx, name)
	if err != nil {
		return "", err
	}
	if fleet != nil && fleet.Annotations[addonv1alpha1.ManagedClusterAnnotation] != "" {
		return fmt.Sprintf("Waiting for member %q to leave; if its agent is gone, annotate the MemberCluster with %s=true", name, clusterv1beta1.AnnotationGone), r.delete(ctx, fleet)
	}
	work, key := &workv1.ManifestWork{}, client.ObjectKey{Namespace: name, Name: workName}
	exists, err := reconcileutil.GetIfExists(ctx, r.Live, key, work, "reading ManifestWork %s", key)
	if !exists {
		return "", err
	}
	return fmt.Sprintf("Waiting for the klusterlet to delete ManifestWork %q from the cluster", work.Name), r.delete(ctx, work)
}

func (r *Reconciler) delete(ctx context.Context, object client.Object) error {
	if object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := object.GetUID()
	if err := r.Client.Delete(ctx, object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// isolate keeps further placements from the member of a cluster that an administrator denied. The
// taint is the administrator's to remove.
func (r *Reconciler) isolate(ctx context.Context, cluster *clusterv1.ManagedCluster, fleet *registrationv1alpha1.Cluster) error {
	if fleet == nil || cluster.UID == "" || cluster.Spec.HubAcceptsClient || !isFor(fleet, cluster) {
		return nil
	}
	member, err := r.Agents.MemberOf(ctx, fleet)
	if member == nil || err != nil || !member.IsApproved() {
		return err
	}
	return reconcileutil.Patch(ctx, r.Client, member, func() {
		member.Spec.Taints = append(member.Spec.Taints, clusterv1beta1.Taint{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule})
	}, "tainting MemberCluster %q, whose ManagedCluster is denied", member.Name)
}
