// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// byOwner indexes PlacementDecisions by kind and name of their controller.
const byOwner = "owner"

// AddIndexes adds the indexes that the controllers need; with ocm, including those for Open Cluster
// Management's Placements.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer, withOCM bool) error {
	err := indexer.IndexField(ctx, &multiclusterv1alpha1.PlacementDecision{}, byOwner, func(object client.Object) []string {
		if owner := metav1.GetControllerOf(object); owner != nil {
			return []string{owner.Kind + "/" + owner.Name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing PlacementDecisions by owner: %w", err)
	}
	if withOCM {
		return (&ocm{}).addIndex(ctx, indexer)
	}
	return nil
}

// owner is the placement of an object, if it is of this family.
func (r *Reconciler) owner(object client.Object) []types.NamespacedName {
	ref := metav1.GetControllerOf(object)
	if ref == nil {
		return nil
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || group.Group != r.source.group() {
		return nil
	}
	for _, namespace := range []string{object.GetNamespace(), ""} {
		key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
		if ref.Kind == r.source.kind(namespace) && object.GetNamespace() == r.namespaceOf(key) {
			return []types.NamespacedName{key}
		}
	}
	return nil
}

// ofProfile are the placements that a new or deleted profile concerns.
func (r *Reconciler) ofProfile(profile client.Object) []types.NamespacedName {
	if profile.GetNamespace() != r.Namespace {
		return nil
	}
	return r.wanted.of(profile.GetName())
}

// requestChanged passes changes of a placement's request to be published.
func requestChanged() builder.Predicates {
	return builder.WithPredicates(predicate.Or[client.Object](
		predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, enqueue.Updates(func(was, is client.Object) bool {
			return was.GetUID() != is.GetUID() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil)
		})))
}

// chosenChanged passes bindings that are added to or removed from a decision, but not the progress of
// their rollout.
func chosenChanged() builder.Predicates {
	return builder.WithPredicates(enqueue.Updates(func(was, is placementv1beta1.BindingObject) bool {
		return counts(was) != counts(is) || was.GetSpec().TargetCluster != is.GetSpec().TargetCluster
	}))
}

// counts reports whether the member of a binding is part of the decision.
func counts(b placementv1beta1.BindingObject) bool {
	return b.GetDeletionTimestamp() == nil && b.GetSpec().State != placementv1beta1.BindingUnscheduled
}
