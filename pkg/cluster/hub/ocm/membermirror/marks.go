// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/managedcluster"
)

// Marks are the labels and taints that people put on the ManagedCluster of a member, which is the
// MemberCluster of the UID. What it has from the MemberCluster is none of them, nor are the hub's
// own taints: these say what the MemberCluster says as well. The UID is empty for a ManagedCluster
// that shows no member. Nothing that is returned may be changed.
func Marks(cluster *clusterv1.ManagedCluster) (member types.UID, labels map[string]string, taints []clusterv1.Taint) {
	member = types.UID(cluster.Annotations[MemberAnnotation])
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
