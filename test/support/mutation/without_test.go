// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

func TestOnlyTheNamedPolicyIsLeftOutWithItsBinding(t *testing.T) {
	all := policies.Members(policies.Parameters{})
	if left := Left(all); len(left) != len(all) {
		t.Errorf("%d of %d are left though nobody named any", len(left), len(all))
	}
	t.Setenv(Variable, "fleetgate-member-secrets,fleetgate-nothing")
	left := Left(all)
	for _, object := range left {
		if object.GetName() == "fleetgate-member-secrets" {
			t.Errorf("%T is left", object)
		}
	}
	if len(left) != len(all)-2 {
		t.Errorf("%d of %d are left, want two less", len(left), len(all))
	}
}
