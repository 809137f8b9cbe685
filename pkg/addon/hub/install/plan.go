// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/addon/hub/annotations"
	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// plan is what an install strategy changes.
type plan struct {
	// create are clusters without the add-on, by name.
	create []string
	// remove are the add-ons of clusters that are no longer selected, by cluster.
	remove []*addonv1alpha1.ManagedClusterAddOn
	// retained are the clusters that keep the add-on because the decisions are incomplete, and
	// incomplete says why.
	retained   []string
	incomplete []string
}

// planOf compares the decisions of all Placements with the existing add-ons.
func planOf(decided []*objects.Decided, existing map[string]*addonv1alpha1.ManagedClusterAddOn) plan {
	var p plan
	wanted := sets.New[string]()
	for _, d := range decided {
		wanted = wanted.Union(d.Clusters)
		if d.Incomplete != "" {
			p.incomplete = append(p.incomplete, d.Incomplete)
		}
	}
	for cluster := range wanted {
		if existing[cluster] == nil {
			p.create = append(p.create, cluster)
		}
	}
	slices.Sort(p.create)
	for _, cluster := range sets.List(sets.KeySet(existing).Difference(wanted)) {
		switch addOn := existing[cluster]; {
		case addOn.DeletionTimestamp != nil:
		case len(p.incomplete) > 0:
			p.retained = append(p.retained, cluster)
		default:
			p.remove = append(p.remove, addOn)
		}
	}
	return p
}

// returnDelay is how long a cluster has to be available before it loses an add-on. Placements select it
// again only a moment after it has returned.
const returnDelay = time.Minute

// mayLose reports whether a cluster can lose an add-on because no Placement selects it. While a cluster
// is unavailable, its taints may be the only reason, and an outage must not delete add-ons.
func mayLose(cluster *clusterv1.ManagedCluster, now time.Time) bool {
	available := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable)
	return available == nil || cluster.DeletionTimestamp != nil ||
		available.Status == metav1.ConditionTrue && now.Sub(available.LastTransitionTime.Time) >= returnDelay
}

// desiredAddOn is the ManagedClusterAddOn of a cluster that an install strategy selects.
func desiredAddOn(of *addonv1alpha1.ClusterManagementAddOn, cluster *clusterv1.ManagedCluster) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Name, Name: of.Name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(of, addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"))},
	}}
	annotations.Copy(addOn, cluster)
	return addOn
}
