// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"encoding/json"
	"testing"
)

func TestAccountUsername_OfTheGatewayIsTheUpstreamName(t *testing.T) {
	want := "system:serviceaccount:open-cluster-management-managed-serviceaccount:cluster-gateway"
	if got := AccountUsername(GatewayAccount); got != want {
		t.Errorf("username of the gateway is %q, want %q", got, want)
	}
}

func TestManagedServiceAccountSpec_OmitsUnsetValidity(t *testing.T) {
	out, err := json.Marshal(ManagedServiceAccountSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `{"rotation":{}}`; got != want {
		t.Errorf("empty spec is %s, want %s: the server would read it as a validity of 0", got, want)
	}
}
