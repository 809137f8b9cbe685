// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// namespacesOf are the namespaces that sets want on a cluster, by set and name, with the agent's
// status of them.
func namespacesOf(cluster *clusterv1.ManagedCluster, sets []clusterv1beta2.ManagedClusterSet) []clusterv1.ClusterSetManagedNamespaceStatus {
	var wanted []clusterv1.ClusterSetManagedNamespaceStatus
	for i := range sets {
		set := &sets[i]
		if len(set.Spec.ManagedNamespaces) == 0 || set.DeletionTimestamp != nil {
			continue
		}
		selector, err := Members(set)
		if err != nil || !selector.Matches(labels.Set(cluster.Labels)) {
			continue
		}
		for _, namespace := range set.Spec.ManagedNamespaces {
			one := clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: set.Name, Name: namespace.Name}
			for _, known := range cluster.Status.ManagedNamespaces {
				if known.ClusterSet == one.ClusterSet && known.Name == one.Name {
					one.Conditions = known.Conditions
				}
			}
			wanted = append(wanted, one)
		}
	}
	slices.SortFunc(wanted, func(a, b clusterv1.ClusterSetManagedNamespaceStatus) int {
		return cmp.Or(cmp.Compare(a.ClusterSet, b.ClusterSet), cmp.Compare(a.Name, b.Name))
	})
	return wanted
}

// writeNamespaces tells a cluster which namespaces its sets want there, if that has changed.
func (r *Reconciler) writeNamespaces(ctx context.Context, cluster *clusterv1.ManagedCluster, sets []clusterv1beta2.ManagedClusterSet) error {
	wanted := namespacesOf(cluster, sets)
	if cluster.DeletionTimestamp != nil || equality.Semantic.DeepEqual(wanted, cluster.Status.ManagedNamespaces) {
		return nil
	}
	// Listed objects belong to the cache.
	updated := cluster.DeepCopy()
	return client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Client, updated, func() {
		updated.Status.ManagedNamespaces = wanted
	}, "writing the namespaces of its sets to ManagedCluster %q", cluster.Name))
}
