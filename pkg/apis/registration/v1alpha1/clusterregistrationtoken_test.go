// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestLifetime_IsInfiniteUnlessTTLIsPositive(t *testing.T) {
	cases := map[string]struct {
		reason   string
		spec     string
		want     time.Duration
		infinite bool
	}{
		"positive":          {reason: "a positive ttl is a limit", spec: `{"ttl":"1h30m"}`, want: 90 * time.Minute},
		"smallest":          {reason: "the smallest positive ttl is a limit too", spec: `{"ttl":"1ns"}`, want: time.Nanosecond},
		"zero without unit": {reason: "zero is infinite", spec: `{"ttl":"0"}`, infinite: true},
		"zero":              {reason: "zero is infinite, with a unit too", spec: `{"ttl":"0s"}`, infinite: true},
		"negative":          {reason: "a negative ttl is infinite, as documented upstream", spec: `{"ttl":"-1h"}`, infinite: true},
		"null":              {reason: "null is infinite", spec: `{"ttl":null}`, infinite: true},
		"unset":             {reason: "an unset ttl is infinite", spec: `{}`, infinite: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var spec ClusterRegistrationTokenSpec
			if err := json.Unmarshal([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			got, infinite := Lifetime(spec.TTL)
			if got != tc.want || infinite != tc.infinite {
				t.Errorf("Lifetime = %s, infinite %v, want %s, %v: %s", got, infinite, tc.want, tc.infinite, tc.reason)
			}
		})
	}
}

func TestClusterAgentStatus_WritesNullIfNeverSeen(t *testing.T) {
	out, err := json.Marshal(ClusterAgentStatus{Namespace: "fleet-system"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `{"lastSeen":null,"namespace":"fleet-system"}`; got != want {
		t.Errorf("status is %s, want %s", got, want)
	}
}
