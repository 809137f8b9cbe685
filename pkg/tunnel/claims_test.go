// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "testing"

func TestASessionDoesNotMoveToAGatewayThatAnotherMayBeIn(t *testing.T) {
	known := newReplicas()
	claim := func(slot int, replica string) {
		t.Helper()
		if err := known.claim(slot, Info{Replica: replica, Replicas: 3}); err != nil {
			t.Fatal(err)
		}
	}
	for slot := range 2 {
		known.arrive(slot)
	}
	claim(1, "gateway-2")
	for replica, want := range map[string]bool{"gateway-1": false, "gateway-2": true, "gateway-3": false} {
		if got := known.isFree(1, replica); got != want {
			t.Errorf("while the other has not heard where it is, %s is free: %t", replica, got)
		}
	}
	claim(0, "gateway-1")
	for replica, want := range map[string]bool{"gateway-1": false, "gateway-2": true, "gateway-3": true} {
		if got := known.isFree(1, replica); got != want {
			t.Errorf("when it has, %s is free: %t", replica, got)
		}
	}
	known.leave(0)
	if !known.isFree(1, "gateway-1") {
		t.Error("a gateway that was left is not free")
	}
}
