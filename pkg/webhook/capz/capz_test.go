// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capz

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/webhook/immutability"
)

func TestThePackCompiles(t *testing.T) {
	policies, err := Policies()
	if err != nil {
		t.Fatal(err)
	}
	if len(policies) < 20 {
		t.Fatalf("only %d policies are found", len(policies))
	}
	compiler, err := immutability.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range policies {
		t.Run(policy.Name, func(t *testing.T) {
			if _, problems := compiler.Compile(policy, true); len(problems) > 0 {
				t.Error(problems.ToAggregate())
			}
		})
	}
}
