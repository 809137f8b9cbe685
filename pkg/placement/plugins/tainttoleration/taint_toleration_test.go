// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tainttoleration

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestFilter(t *testing.T) {
	taint := framework.Taint{Key: "team", Value: "red", Effect: "NoSchedule"}
	cases := map[string]struct {
		toleration framework.Toleration
		want       bool
	}{
		"equal key and value":       {framework.Toleration{Key: "team", Value: "red"}, true},
		"another value":             {framework.Toleration{Key: "team", Value: "blue"}, false},
		"another key":               {framework.Toleration{Key: "zone", Value: "red"}, false},
		"key exists":                {framework.Toleration{Key: "team", Exists: true}, true},
		"everything":                {framework.Toleration{Exists: true}, true},
		"no key, but no Exists":     {framework.Toleration{Value: "red"}, false},
		"equal effect":              {framework.Toleration{Key: "team", Value: "red", Effect: "NoSchedule"}, true},
		"another effect":            {framework.Toleration{Key: "team", Value: "red", Effect: "NoExecute"}, false},
		"everything of that effect": {framework.Toleration{Exists: true, Effect: "NoExecute"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &framework.Cluster{Taints: []framework.Taint{taint}}
			reason := Rule{}.Filter(&framework.Policy{Tolerations: []framework.Toleration{tc.toleration}}, nil, cluster)
			if got := reason == ""; got != tc.want {
				t.Errorf("Filter() = %q, want tolerated: %t", reason, tc.want)
			}
		})
	}
}

func TestFilter_RequiresTolerationOfEveryTaint(t *testing.T) {
	cluster := &framework.Cluster{Taints: []framework.Taint{{Key: "a", Effect: "NoSchedule"}, {Key: "b", Effect: "NoSchedule"}}}
	policy := &framework.Policy{Tolerations: []framework.Toleration{{Key: "a", Exists: true}}}
	if reason := (Rule{}).Filter(policy, nil, cluster); reason == "" {
		t.Error("the taint b is not tolerated, and yet the cluster passes")
	}
}

func TestFilter_NeverToleratesAvoidedTaint(t *testing.T) {
	cluster := &framework.Cluster{Taints: []framework.Taint{{Key: "maintenance", Effect: "NoSchedule"}}}
	policy := &framework.Policy{Tolerations: []framework.Toleration{{Exists: true}}, Avoid: []string{"maintenance"}}
	if reason := (Rule{}).Filter(policy, nil, cluster); reason == "" {
		t.Error("the placement would be moved away from where it was just placed")
	}
}
