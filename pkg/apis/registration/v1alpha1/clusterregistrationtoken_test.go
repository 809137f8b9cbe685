// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestLifetime(t *testing.T) {
	cases := map[string]struct {
		reason   string
		spec     string
		want     time.Duration
		infinite bool
	}{
		"Positive":  {reason: "a positive ttl is a limit", spec: `{"ttl":"1h30m"}`, want: 90 * time.Minute},
		"Short":     {reason: "the smallest positive ttl is a limit too", spec: `{"ttl":"1ns"}`, want: time.Nanosecond},
		"BareZero":  {reason: "zero is for ever", spec: `{"ttl":"0"}`, infinite: true},
		"Zero":      {reason: "zero is for ever, with a unit too", spec: `{"ttl":"0s"}`, infinite: true},
		"Negative":  {reason: "a negative ttl is for ever, as the public text says", spec: `{"ttl":"-1h"}`, infinite: true},
		"Null":      {reason: "null is for ever", spec: `{"ttl":null}`, infinite: true},
		"Not given": {reason: "nothing is for ever", spec: `{}`, infinite: true},
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

func TestAClusterThatWasNeverSeenSaysNull(t *testing.T) {
	out, err := json.Marshal(ClusterAgentStatus{Namespace: "fleet-system"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `{"lastSeen":null,"namespace":"fleet-system"}`; got != want {
		t.Errorf("The agent's status reads %s, want %s", got, want)
	}
}
