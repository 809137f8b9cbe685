// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// NewCache returns a cache of objects with the label of a cluster: roles and Leases of the hub, and
// requests for certificates. The caller adds it to its manager.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	ofClusters, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting what belongs to clusters: %w", err)
	}
	options.DefaultLabelSelector = labels.NewSelector().Add(*ofClusters)
	objects, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of what belongs to clusters: %w", err)
	}
	return objects, nil
}
