// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// TaintFor is the key of the taint, with the effect NoSelect, for a cluster's condition
// ManagedClusterConditionAvailable, which may be nil; empty for an available cluster.
func TaintFor(available *metav1.Condition) string {
	switch {
	case available == nil:
		return clusterv1.TaintUnreachable
	case available.Status == metav1.ConditionTrue:
		return ""
	case available.Status == metav1.ConditionFalse:
		return clusterv1.TaintUnavailable
	}
	return clusterv1.TaintUnreachable
}

// IsTaint is true for the keys of taints that TaintFor returns.
func IsTaint(key string) bool {
	return key == clusterv1.TaintUnreachable || key == clusterv1.TaintUnavailable
}
