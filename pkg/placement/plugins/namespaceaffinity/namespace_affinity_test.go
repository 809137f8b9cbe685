// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaceaffinity

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestFilter(t *testing.T) {
	shop := map[string]string{"shop": "work"}
	cases := map[string]struct {
		namespace  string
		namespaces map[string]string
		want       bool
	}{
		"a placement without a namespace":             {"", shop, true},
		"the namespace is there":                      {"shop", shop, true},
		"the namespace is missing":                    {"bank", shop, false},
		"a cluster that has none":                     {"shop", map[string]string{}, false},
		"a cluster that does not say what it has got": {"bank", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &framework.Policy{Namespace: tc.namespace}
			reason := Rule{}.Filter(policy, nil, &framework.Cluster{Namespaces: tc.namespaces})
			if got := reason == ""; got != tc.want {
				t.Errorf("Filter() = %q, want it to pass: %t", reason, tc.want)
			}
		})
	}
}
