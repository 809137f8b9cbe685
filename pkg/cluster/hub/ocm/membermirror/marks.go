// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
)

// Marks are the labels and taints that people set on the ManagedCluster of a member; member is the
// UID of its MemberCluster. They exclude those copied from the MemberCluster, and the hub's own
// taints, because the MemberCluster has these too. The UID is empty for a ManagedCluster that
// mirrors no member and whose cluster add-on fleetgate-agent did not make one. The results must not
// be changed.
func Marks(cluster *clusterv1.ManagedCluster) (member types.UID, labels map[string]string, taints []clusterv1.Taint) {
	member = types.UID(cmp.Or(cluster.Annotations[MemberAnnotation], cluster.Annotations[addonv1alpha1.AgentMemberAnnotation]))
	if member == "" || cluster.DeletionTimestamp != nil {
		return "", nil, nil
	}
	shown := strings.Split(cluster.Annotations[labelsAnnotation], ",")
	labels = maps.Clone(cluster.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return slices.Contains(shown, key) })
	carried := strings.Split(cluster.Annotations[taintsAnnotation], ",")
	for _, taint := range cluster.Spec.Taints {
		if !managedcluster.IsTaint(taint.Key) && !slices.Contains(carried, taint.Key) {
			taints = append(taints, taint)
		}
	}
	return member, labels, taints
}
