// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
)

// taintsOf returns the desired taints of a cluster, and whether they differ. Taints of people stay;
// of the hub's taints only the one for its availability is kept. The admission webhook sets the
// time of a taint.
func taintsOf(cluster *clusterv1.ManagedCluster) ([]clusterv1.Taint, bool) {
	wanted := managedcluster.TaintFor(meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionAvailable))
	found := false
	taints := slices.DeleteFunc(slices.Clone(cluster.Spec.Taints), func(taint clusterv1.Taint) bool {
		if !managedcluster.IsTaint(taint.Key) {
			return false
		}
		keep := !found && taint.Key == wanted && taint.Value == "" && taint.Effect == clusterv1.TaintEffectNoSelect
		found = found || keep
		return !keep
	})
	if wanted != "" && !found {
		taints = append(taints, clusterv1.Taint{Key: wanted, Effect: clusterv1.TaintEffectNoSelect})
		return taints, true
	}
	return taints, len(taints) != len(cluster.Spec.Taints)
}
