// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "testing"

func TestReplicas_NotFreeWhileAnotherSessionMayEndThere(t *testing.T) {
	known := newReplicas(2)
	claim := func(index int, replica string) {
		t.Helper()
		if err := known.claim(index, Info{Replica: replica, Replicas: 3}, false); err != nil {
			t.Fatal(err)
		}
	}
	for index := range 2 {
		known.arrive(index)
	}
	claim(1, "gateway-2")
	for replica, want := range map[string]bool{"gateway-1": false, "gateway-2": true, "gateway-3": false} {
		if got := known.isFree(1, replica); got != want {
			t.Errorf("before the name of the other gateway has arrived, %s is free: %t", replica, got)
		}
	}
	claim(0, "gateway-1")
	for replica, want := range map[string]bool{"gateway-1": false, "gateway-2": true, "gateway-3": true} {
		if got := known.isFree(1, replica); got != want {
			t.Errorf("when it has, %s is free: %t", replica, got)
		}
	}
	known.leave(0)
	if known.isFree(1, "gateway-1") {
		t.Error("while the other may come to it again, a gateway that was left is free")
	}
	claim(0, "gateway-3")
	if !known.isFree(1, "gateway-1") {
		t.Error("a gateway that was left is not free")
	}
}

// A session was established but had not been recorded yet. The other session moved to that
// gateway's port, left its own gateway for it, and had to reconnect through the hub.
func TestReplicas_NotFreeWhileAnotherSessionIsAboutToArrive(t *testing.T) {
	known := newReplicas(2)
	known.arrive(0)
	if err := known.claim(0, Info{Replica: "gateway-2", Replicas: 2}, false); err != nil {
		t.Fatal(err)
	}
	if known.isFree(0, "gateway-1") {
		t.Error("the gateway to which the other can only come is free")
	}
	if !known.isFree(0, "gateway-2") {
		t.Error("its own is not")
	}
	if !known.isFree(1, "gateway-1") {
		t.Error("it is not free for a session that is not established")
	}
}

func TestReplicas_MovingSessionAvoidsFullGateway(t *testing.T) {
	known := newReplicas(2)
	full := Info{Replica: "gateway-1", Replicas: 3, Full: true}
	if err := known.claim(0, full, false); err != nil {
		t.Errorf("a session that replaces none is not kept: %v", err)
	}
	if err := known.claim(1, Info{Replica: "gateway-2", Replicas: 3, Full: true}, true); !isUnsuitable(err) {
		t.Errorf("moving to a full gateway: %v", err)
	}
	if err := known.claim(0, full, false); err != nil {
		t.Errorf("the session in use ends when its gateway becomes full: %v", err)
	}
}
