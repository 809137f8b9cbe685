// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Members reads all of them.
func (h *Hub) Members(ctx context.Context) ([]clusterv1beta1.MemberCluster, error) {
	var list clusterv1beta1.MemberClusterList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	return list.Items, nil
}

// BindingsOf reads the bindings of a placement.
func (h *Hub) BindingsOf(ctx context.Context, placement placementv1beta1.PlacementObject) ([]placementv1beta1.BindingObject, error) {
	labels := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}
	var bindings []placementv1beta1.BindingObject
	if placement.GetNamespace() != "" {
		var list placementv1beta1.ResourceBindingList
		if err := h.List(ctx, &list, client.InNamespace(placement.GetNamespace()), labels); err != nil {
			return nil, fmt.Errorf("listing the bindings of placement %q: %w", NameOf(placement), err)
		}
		for i := range list.Items {
			bindings = append(bindings, &list.Items[i])
		}
		return bindings, nil
	}
	var list placementv1beta1.ClusterResourceBindingList
	if err := h.List(ctx, &list, labels); err != nil {
		return nil, fmt.Errorf("listing the bindings of placement %q: %w", NameOf(placement), err)
	}
	for i := range list.Items {
		bindings = append(bindings, &list.Items[i])
	}
	return bindings, nil
}
