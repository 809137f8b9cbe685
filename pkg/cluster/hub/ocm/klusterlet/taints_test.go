// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestTaintsOf_ExactlyOneTaintOfTheHub(t *testing.T) {
	taint := func(key string) clusterv1.Taint {
		return clusterv1.Taint{Key: key, Effect: clusterv1.TaintEffectNoSelect}
	}
	unreachable, unavailable, other := taint(clusterv1.TaintUnreachable), taint(clusterv1.TaintUnavailable), taint("gpu")
	soft := unreachable
	soft.Effect = clusterv1.TaintEffectPreferNoSelect
	for name, tc := range map[string]struct {
		available metav1.ConditionStatus
		has       []clusterv1.Taint
		want      []clusterv1.Taint
		changed   bool
	}{
		"never heard of":             {"", []clusterv1.Taint{other}, []clusterv1.Taint{other, unreachable}, true},
		"no heartbeat":               {metav1.ConditionUnknown, []clusterv1.Taint{unavailable}, []clusterv1.Taint{unreachable}, true},
		"unknown still":              {metav1.ConditionUnknown, []clusterv1.Taint{other, unreachable}, []clusterv1.Taint{other, unreachable}, false},
		"does not answer":            {metav1.ConditionFalse, []clusterv1.Taint{unreachable, other}, []clusterv1.Taint{other, unavailable}, true},
		"available":                  {metav1.ConditionTrue, []clusterv1.Taint{unreachable, unavailable, other}, []clusterv1.Taint{other}, true},
		"available still":            {metav1.ConditionTrue, []clusterv1.Taint{other}, []clusterv1.Taint{other}, false},
		"somebody gave it softer":    {metav1.ConditionUnknown, []clusterv1.Taint{soft}, []clusterv1.Taint{unreachable}, true},
		"somebody gave it twice":     {metav1.ConditionUnknown, []clusterv1.Taint{unreachable, unreachable}, []clusterv1.Taint{unreachable}, true},
		"somebody gave the other to": {metav1.ConditionTrue, []clusterv1.Taint{soft}, nil, true},
	} {
		cluster := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: tc.has}}
		if tc.available != "" {
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: tc.available}}
		}
		got, changed := taintsOf(cluster)
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed {
			t.Errorf("%s: changed %v (-want +got)\n%s", name, changed, diff)
		}
	}
}
