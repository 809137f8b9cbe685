// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// Members reads all of them.
func (h *Hub) Members(ctx context.Context) ([]clusterv1beta1.MemberCluster, error) {
	var list clusterv1beta1.MemberClusterList
	if err := h.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing members: %w", err)
	}
	return list.Items, nil
}

// BindingsOf reads the bindings of a placement, in the order of their names.
func (h *Hub) BindingsOf(ctx context.Context, placement placementv1beta1.PlacementObject) ([]placementv1beta1.BindingObject, error) {
	return objects.LiveBindings(ctx, h, client.ObjectKeyFromObject(placement))
}

// Bound reads a placement by its name, and its bindings.
func (h *Hub) Bound(ctx context.Context, name string) (placementv1beta1.PlacementObject, []placementv1beta1.BindingObject, error) {
	var placement placementv1beta1.PlacementObject
	var bindings []placementv1beta1.BindingObject
	err := together(ctx,
		func(ctx context.Context) (err error) { placement, err = h.Placement(ctx, name); return err },
		func(ctx context.Context) (err error) {
			bindings, err = objects.LiveBindings(ctx, h, keyOf(name))
			return err
		},
	)
	return placement, bindings, err
}
