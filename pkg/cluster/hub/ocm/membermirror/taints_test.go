// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestCarryTaints_RepelOnlyNewPicks(t *testing.T) {
	ofMember := func(key, value string) clusterv1beta1.Taint {
		return clusterv1beta1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	carried := func(key, value string) clusterv1.Taint {
		return clusterv1.Taint{Key: key, Value: value, Effect: clusterv1.TaintEffectNoSelectIfNew}
	}
	byHand := clusterv1.Taint{Key: "gpu", Value: "full", Effect: clusterv1.TaintEffectNoSelect}
	handNew := carried("gpu", "full")
	for name, tc := range map[string]struct {
		has        []clusterv1.Taint
		annotation string
		member     []clusterv1beta1.Taint
		want       []clusterv1.Taint
		keys       string
	}{
		"none":                           {},
		"a new one":                      {member: []clusterv1beta1.Taint{ofMember("gpu", "")}, want: []clusterv1.Taint{carried("gpu", "")}, keys: "gpu"},
		"two":                            {member: []clusterv1beta1.Taint{ofMember("b", ""), ofMember("a", "1")}, want: []clusterv1.Taint{carried("b", ""), carried("a", "1")}, keys: "a,b"},
		"one that is there":              {has: []clusterv1.Taint{carried("gpu", "")}, annotation: "gpu", member: []clusterv1beta1.Taint{ofMember("gpu", "")}, want: []clusterv1.Taint{carried("gpu", "")}, keys: "gpu"},
		"one with another value":         {has: []clusterv1.Taint{carried("gpu", "1")}, annotation: "gpu", member: []clusterv1beta1.Taint{ofMember("gpu", "2")}, want: []clusterv1.Taint{carried("gpu", "2")}, keys: "gpu"},
		"one that is gone":               {has: []clusterv1.Taint{byHand, carried("a", "")}, annotation: "a", want: []clusterv1.Taint{byHand}},
		"one that people have put there": {has: []clusterv1.Taint{byHand}, member: []clusterv1beta1.Taint{ofMember("gpu", "")}, want: []clusterv1.Taint{byHand}},
		"one of people, that looks as if carried": {has: []clusterv1.Taint{handNew}, want: []clusterv1.Taint{handNew}},
		"the hub's own": {member: []clusterv1beta1.Taint{ofMember(clusterv1beta1.TaintUnapproved, ""), ofMember(clusterv1beta1.TaintUnreachable, "")}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: tc.has}}
			if tc.annotation != "" {
				metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, taintsAnnotation, tc.annotation)
			}
			member := &clusterv1beta1.MemberCluster{Spec: clusterv1beta1.MemberClusterSpec{Taints: tc.member}}
			for _, look := range []string{"first", "next"} {
				carryTaints(cluster, member)
				if diff := cmp.Diff(tc.want, cluster.Spec.Taints, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("taints after the %s look (-want +got)\n%s", look, diff)
				}
				if got := cluster.Annotations[taintsAnnotation]; got != tc.keys {
					t.Errorf("carried are %q, want %q", got, tc.keys)
				}
			}
		})
	}
}
