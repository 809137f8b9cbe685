// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// disruption holds evictions and budgets against their placement.
type disruption struct{ live client.Reader }

// eviction returns the errors of a new eviction; its spec is immutable.
func (d disruption) eviction(ctx context.Context, older **placementv1beta1.ClusterResourcePlacementEviction, newer *placementv1beta1.ClusterResourcePlacementEviction) (field.ErrorList, error) {
	if older != nil {
		return nil, nil
	}
	placement, err := d.placement(ctx, newer.Spec.PlacementName)
	return validation.ValidateEviction(placement), err
}

// budget returns the errors of a budget, which has the name of its placement.
func (d disruption) budget(ctx context.Context, _ **placementv1beta1.ClusterResourcePlacementDisruptionBudget, newer *placementv1beta1.ClusterResourcePlacementDisruptionBudget) (field.ErrorList, error) {
	if newer.Name == "" {
		return nil, nil // A generated name is not that of a placement.
	}
	placement, err := d.placement(ctx, newer.Name)
	return validation.ValidateBudget(&newer.Spec, placement), err
}

// placement returns nil if there is none of that name.
func (d disruption) placement(ctx context.Context, name string) (*placementv1beta1.ClusterResourcePlacement, error) {
	var placement placementv1beta1.ClusterResourcePlacement
	if found, err := reconcileutil.GetIfExists(ctx, d.live, client.ObjectKey{Name: name}, &placement, "reading ClusterResourcePlacement %q", name); !found {
		return nil, err
	}
	return &placement, nil
}
