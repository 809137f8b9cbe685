// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// taintsAnnotation is on a ManagedCluster that shows a member. Its value is the keys of the taints
// from the MemberCluster, separated by commas.
const taintsAnnotation = "fleetgate.io/member-taints"

// carryTaints copies the taints of a member to its mirror, for new picks only: a taint of a
// MemberCluster removes nothing. Taints that people set on the ManagedCluster stay, and one with
// the same key is not copied. The admission webhook sets the time of a taint.
func carryTaints(cluster *clusterv1.ManagedCluster, member *clusterv1beta1.MemberCluster) {
	carried := strings.Split(cluster.Annotations[taintsAnnotation], ",")
	wanted := map[string]string{}
	for _, taint := range member.Spec.Taints {
		if taint.Key != clusterv1beta1.TaintUnapproved && taint.Key != clusterv1beta1.TaintUnreachable {
			wanted[taint.Key] = taint.Value
		}
	}
	var keys []string
	cluster.Spec.Taints = slices.DeleteFunc(slices.Clone(cluster.Spec.Taints), func(taint clusterv1.Taint) bool {
		value, wants := wanted[taint.Key]
		ours := taint.Effect == clusterv1.TaintEffectNoSelectIfNew && slices.Contains(carried, taint.Key)
		if ours && wants && taint.Value == value {
			keys = append(keys, taint.Key)
		}
		if !ours || taint.Value == value {
			delete(wanted, taint.Key)
		}
		return ours && (!wants || taint.Value != value)
	})
	for _, taint := range member.Spec.Taints {
		if _, missing := wanted[taint.Key]; missing {
			delete(wanted, taint.Key)
			keys = append(keys, taint.Key)
			cluster.Spec.Taints = append(cluster.Spec.Taints, clusterv1.Taint{Key: taint.Key, Value: taint.Value, Effect: clusterv1.TaintEffectNoSelectIfNew})
		}
	}
	if len(keys) == 0 {
		delete(cluster.Annotations, taintsAnnotation)
		return
	}
	slices.Sort(keys)
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, taintsAnnotation, strings.Join(keys, ","))
}
