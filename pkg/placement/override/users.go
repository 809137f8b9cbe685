// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// used are the snapshots that members have or are about to get. A binding cannot be dispatched without
// its snapshots.
func (r *Reconciler) used(ctx context.Context) (sets.Set[types.NamespacedName], error) {
	used := sets.New[types.NamespacedName]()
	add := func(spec *placementv1beta1.ResourceBindingSpec) {
		for _, name := range spec.ClusterResourceOverrideSnapshots {
			used.Insert(types.NamespacedName{Name: name})
		}
		for _, s := range spec.ResourceOverrideSnapshots {
			used.Insert(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		}
	}
	var cluster placementv1beta1.ClusterResourceBindingList
	if err := r.Client.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing bindings that use override snapshots: %w", err)
	}
	for i := range cluster.Items {
		add(&cluster.Items[i].Spec)
	}
	var within placementv1beta1.ResourceBindingList
	if err := r.Client.List(ctx, &within, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing bindings that use override snapshots: %w", err)
	}
	for i := range within.Items {
		add(&within.Items[i].Spec)
	}
	needed, err := r.Users.NeededOverrides(ctx)
	if err != nil {
		return nil, err
	}
	return used.Insert(needed...), nil
}
