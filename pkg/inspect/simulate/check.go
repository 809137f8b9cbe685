// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/validation"
)

// Check applies the hub's defaults and rules, so that a placement that the hub would reject is not
// simulated.
func Check(input *Input) error {
	if len(input.Placements) == 0 && len(input.Chosen) == 0 {
		return errors.New("the files have no ClusterResourcePlacement, no ResourcePlacement and no Placement")
	}
	if len(input.Chosen) > 0 && len(input.World.Clusters) == 0 {
		return errors.New("the files have no ManagedCluster: write them with kubectl get managedclusters -o yaml")
	}
	if len(input.Placements) > 0 && len(input.Members) == 0 {
		return errors.New("the files have no MemberCluster: write them with kubectl get memberclusters -o yaml")
	}
	for _, placement := range input.Placements {
		_, clusterScoped := placement.(*placementv1beta1.ClusterResourcePlacement)
		validation.DefaultPlacement(placement.GetSpec())
		// Only a hub knows which kinds exist.
		scopes := func(schema.GroupVersionKind) (bool, error) { return !clusterScoped, nil }
		meta := metav1.ObjectMeta{Name: placement.GetName(), Namespace: placement.GetNamespace()}
		if faults := validation.ValidatePlacement(&meta, placement.GetSpec(), clusterScoped, scopes); len(faults) > 0 {
			return fmt.Errorf("placement %q is invalid: %w", placement.GetName(), faults.ToAggregate())
		}
	}
	return nil
}
