// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"
)

func TestTheGatewaysUserIsTheOneThatUsersSee(t *testing.T) {
	want := "system:serviceaccount:open-cluster-management-managed-serviceaccount:cluster-gateway"
	if got := AccountUsername(GatewayAccount); got != want {
		t.Errorf("The gateway acts as %q, want %q", got, want)
	}
}

func TestValidityThatIsNotSetIsLeftToTheDefault(t *testing.T) {
	out, err := json.Marshal(ManagedServiceAccountSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `{"rotation":{}}`; got != want {
		t.Errorf("An empty spec reads %s, want %s: the server would take it for a validity of 0", got, want)
	}
}
