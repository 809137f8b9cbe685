// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// finalize deletes the binding's Works and removes the finalizer once they are deleted. The deletion of
// the last Work triggers the binding again.
func (r *Reconciler) finalize(ctx context.Context, b placementv1beta1.BindingObject) error {
	if !controllerutil.ContainsFinalizer(b, placementv1beta1.WorkCleanupFinalizer) {
		return nil
	}
	member, err := r.member(ctx, b.GetSpec().TargetCluster)
	if err != nil {
		return err
	}
	stays := member != nil
	if stays && placementv1beta1.Paused(member) {
		return nil // The resources on the member stay. Resuming triggers the binding again.
	}
	works, err := r.liveWorksOf(ctx, b)
	if err != nil {
		return err
	}
	if err := r.annotateCause(ctx, b, works, stays); err != nil {
		return err
	}
	if !stays || len(works) == 0 {
		return reconcileutil.RemoveFinalizer(ctx, r.Client, b, placementv1beta1.WorkCleanupFinalizer, "removing the finalizer of binding %q", b.GetName())
	}
	for _, work := range works {
		if work.DeletionTimestamp != nil {
			continue
		}
		if err := r.Client.Delete(ctx, whole(work), client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting work %q of member %q: %w", work.Name, b.GetSpec().TargetCluster, err)
		}
	}
	return nil
}

// whole returns a Work with the name of a metadata object, for writes.
func whole(work *metav1.PartialObjectMetadata) *placementv1beta1.Work {
	return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
}

// A member's agent cannot see why a Work is deleted, and its action depends on that: a change of a
// placement is no request to remove data. So a Work is annotated before its deletion. Until then it says
// that there is no cause: a user who deletes a namespace or a CustomResourceDefinition, and the garbage
// collector after a restore, delete Works too, and a user can delete the bindings of a placement that selects
// their members.

// annotateCause annotates the Works of a binding that is being deleted. A leaving member keeps its placed
// resources. Its Works are deleted with its namespace, or by the hub's garbage collector after their
// binding, so its agent has to know the cause before.
func (r *Reconciler) annotateCause(ctx context.Context, b placementv1beta1.BindingObject, works []*metav1.PartialObjectMetadata, stays bool) error {
	if len(works) == 0 {
		return nil
	}
	if !stays || b.GetAnnotations()[placementv1beta1.DeletePolicyAnnotation] == placementv1beta1.DeletePolicyAbandon {
		return r.annotate(ctx, works, map[string]string{placementv1beta1.DeletePolicyAnnotation: placementv1beta1.DeletePolicyAbandon})
	}
	if !slices.ContainsFunc(works, mayChange) {
		return nil
	}
	want, err := r.causeOf(ctx, b)
	if err != nil {
		return err
	}
	return r.annotate(ctx, works, want)
}

// mayChange reports whether a Work has no cause yet, or one that can still change. "Placement deleted"
// is final. The deletion of each Work triggers its binding, so without this check it would be annotated
// repeatedly.
func mayChange(work *metav1.PartialObjectMetadata) bool {
	return work.Annotations[placementv1beta1.DeletionCauseAnnotation] != placementv1beta1.DeletionPlacementDeleted
}

// causeOf returns the annotations for the Works of a binding that is being deleted. Without any, the agent
// retains data.
func (r *Reconciler) causeOf(ctx context.Context, b placementv1beta1.BindingObject) (map[string]string, error) {
	key, ok := objects.KeyOf(b)
	if !ok {
		return nil, nil
	}
	placement, err := r.livePlacement(ctx, key)
	if err != nil {
		return nil, err
	}
	recorded := b.GetAnnotations()[placementv1beta1.DeletionCauseAnnotation]
	if recorded == "" && placement == nil {
		// The namespace controller deletes bindings before their placement, and others may have done so.
		going, err := objects.DefinitionGoing(ctx, r.Live, key.Namespace)
		if err != nil {
			return nil, err
		}
		if going {
			recorded = placementv1beta1.DeletionNone
		}
	}
	return annotationsFor(b, recorded, placement), nil
}

// annotationsFor are the annotations for a recorded cause; it is empty if no controller recorded one. A nil
// placement was deleted.
func annotationsFor(b placementv1beta1.BindingObject, recorded string, placement placementv1beta1.PlacementObject) map[string]string {
	want := map[string]string{placementv1beta1.DeletionCauseAnnotation: placementv1beta1.DeletionNone}
	switch {
	case recorded == placementv1beta1.DeletionNone:
	case recorded == placementv1beta1.DeletionPlacementDeleted, placement == nil:
		want[placementv1beta1.DeletionCauseAnnotation] = placementv1beta1.DeletionPlacementDeleted
	case recorded == placementv1beta1.DeletionPlacementChanged, b.GetSpec().State == placementv1beta1.BindingUnscheduled:
		want[placementv1beta1.DeletionCauseAnnotation] = placementv1beta1.DeletionPlacementChanged
		if strategy := placement.GetSpec().Strategy.DeleteStrategy; strategy != nil && strategy.PropagationPolicy == placementv1beta1.DeletePlaced {
			want[placementv1beta1.DeletePolicyAnnotation] = placementv1beta1.DeletePolicyDelete
		}
	}
	return want
}

// livePlacement reads a placement from the API server; nil if it or its namespace is deleted. The cache
// can lag behind the deletion.
func (r *Reconciler) livePlacement(ctx context.Context, key types.NamespacedName) (placementv1beta1.PlacementObject, error) {
	placement, err := objects.Placement(ctx, r.Live, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || placement.GetDeletionTimestamp() != nil {
		return nil, err
	}
	if key.Namespace == "" {
		return placement, nil
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Live.Get(ctx, types.NamespacedName{Name: key.Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading namespace %q: %w", key.Namespace, err)
	}
	if namespace.UID == "" || namespace.DeletionTimestamp != nil {
		return nil, nil
	}
	return placement, nil
}

// annotate tells the agent what to do with a Work's objects before the Work is deleted. Existing
// annotations stay, unless a user has deleted the placement since.
func (r *Reconciler) annotate(ctx context.Context, works []*metav1.PartialObjectMetadata, want map[string]string) error {
	for _, work := range works {
		missing := missingIn(work.Annotations, want)
		if len(missing) == 0 {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": missing}})
		if err != nil {
			return fmt.Errorf("encoding annotations: %w", err)
		}
		if err := r.Client.Patch(ctx, whole(work), client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("annotating work %s/%s before its deletion: %w", work.Namespace, work.Name, err)
		}
	}
	return nil
}

func missingIn(has, want map[string]string) map[string]string {
	missing := map[string]string{}
	for key, value := range want {
		known := has[key]
		switch {
		case known == value:
		case key == placementv1beta1.DeletionCauseAnnotation && known != "" && known != placementv1beta1.DeletionNone && value != placementv1beta1.DeletionPlacementDeleted:
		case key == placementv1beta1.DeletePolicyAnnotation && known == placementv1beta1.DeletePolicyAbandon:
		default:
			missing[key] = value
		}
	}
	return missing
}
