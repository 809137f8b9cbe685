// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// copyToNamespace copies a status into the selected namespace, if the placement requests it, and
// reports the result in a condition.
func (r *Reconciler) copyToNamespace(ctx context.Context, placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) error {
	crp, namespace := accessible(placement)
	if namespace == "" {
		return nil
	}
	condition := metav1.Condition{
		Type: placement.ConditionType(placementv1beta1.ConditionStatusSynced), ObservedGeneration: placement.GetGeneration(),
		Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonStatusSyncSucceeded,
		Message: fmt.Sprintf("The status can be read in namespace %q, as ClusterResourcePlacementStatus %q", namespace, crp.Name),
	}
	err := r.writeCopy(ctx, crp, namespace, withoutSynced(placement, status))
	if err != nil && !apierrors.IsConflict(err) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, placementv1beta1.ReasonStatusSyncFailed, err.Error()
		if apierrors.IsNotFound(err) || objects.RefusedAsGoing(err) {
			err = nil // The namespace is missing. Its creation changes the selection, which triggers the placement again.
		}
		if status.Reason == "" {
			status.Reason, status.Message = condition.Reason, condition.Message
		}
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return err
}

// accessible is the placement and the namespace for a copy of its status, or "".
func accessible(placement placementv1beta1.PlacementObject) (*placementv1beta1.ClusterResourcePlacement, string) {
	crp, ok := placement.(*placementv1beta1.ClusterResourcePlacement)
	if !ok || crp.Spec.StatusReportingScope != placementv1beta1.NamespaceAccessible {
		return nil, ""
	}
	return crp, objects.SelectedNamespace(&crp.Spec)
}

// withoutSynced is the status without the condition about the copy.
func withoutSynced(placement placementv1beta1.PlacementObject, status *placementv1beta1.PlacementStatus) placementv1beta1.PlacementStatus {
	source := *status.DeepCopy()
	source.Conditions = slices.DeleteFunc(source.Conditions, func(c metav1.Condition) bool {
		return c.Type == placement.ConditionType(placementv1beta1.ConditionStatusSynced)
	})
	return source
}

func (r *Reconciler) writeCopy(ctx context.Context, crp *placementv1beta1.ClusterResourcePlacement, namespace string, source placementv1beta1.PlacementStatus) error {
	have := &placementv1beta1.ClusterResourcePlacementStatus{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: crp.Name}, have)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the copy of the status in namespace %q: %w", namespace, err)
	}
	if err == nil && metav1.IsControlledBy(have, crp) && equality.Semantic.DeepEqual(have.SourceStatus, source) {
		return nil
	}
	missing := err != nil
	have.Namespace, have.Name = namespace, crp.Name
	have.SourceStatus, have.LastUpdatedTime = source, metav1.NewTime(r.Clock.Now())
	if err := controllerutil.SetControllerReference(crp, have, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning the copy of the status in namespace %q: %w", namespace, err)
	}
	if missing {
		err = r.Client.Create(ctx, have)
	} else {
		err = r.Client.Update(ctx, have)
	}
	if err != nil {
		return fmt.Errorf("writing the copy of the status in namespace %q: %w", namespace, err)
	}
	return nil
}
