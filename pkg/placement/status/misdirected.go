// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// misdirected returns the name of a ResourceOverride that names a ResourcePlacement without its scope. The scope is
// Cluster by default: the override waits for a ClusterResourcePlacement of that name, and its author for an effect.
func (r *Reconciler) misdirected(ctx context.Context, key types.NamespacedName) (string, error) {
	if key.Namespace == "" {
		return "", nil
	}
	var overrides placementv1beta1.ResourceOverrideList
	if err := r.Client.List(ctx, &overrides, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing ResourceOverrides of namespace %q: %w", key.Namespace, err)
	}
	for i := range overrides.Items {
		of := overrides.Items[i].Spec.Placement
		if of == nil || of.Name != key.Name || of.Scope == apiextensionsv1.NamespaceScoped {
			continue
		}
		err := r.Client.Get(ctx, types.NamespacedName{Name: of.Name}, &placementv1beta1.ClusterResourcePlacement{})
		if apierrors.IsNotFound(err) {
			return overrides.Items[i].Name, nil
		}
		return "", err // The override is for the ClusterResourcePlacement that exists.
	}
	return "", nil
}

// namedPlacement queues the ResourcePlacement that an override may be meant for.
func namedPlacement(_ context.Context, object client.Object) []reconcile.Request {
	override, is := object.(*placementv1beta1.ResourceOverride)
	if !is || override.Spec.Placement == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: override.Namespace, Name: override.Spec.Placement.Name}}}
}
