// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

func TestResponds_UnresponsiveAgentIsRefusedUntilItRecovers(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("here"), "echo": echo})
	before, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	link.Cut()
	eventually(t, func() bool { return !r.Responds(t.Context(), "one") })
	if r.LastSessionChange("one").IsZero() {
		t.Error("connections of the previous session are still used")
	}
	if !r.Connected("one") {
		t.Error("its tunnel has ended")
	}
	if _, err := r.DialMember(t.Context(), "one", "a"); !errors.Is(err, tunnel.ErrUnresponsive) || !tunnel.IsNotConnected(err) {
		t.Errorf("dialing: %v, want ErrUnresponsive and ErrNotConnected", err)
	}
	link.Heal()
	eventually(t, func() bool {
		conn, err := r.DialMember(t.Context(), "one", "a")
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if _, err := before.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	response := make([]byte, len("still here"))
	if _, err := before.Read(response); err != nil || string(response) != "still here" {
		t.Errorf("the open stream continued with %q, %v", response, err)
	}
}

func TestResponds_DialSkipsUnresponsiveAgent(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("well")})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("still"), "echo": echo})
	eventually(t, func() bool { return hear(t, r, "one", "a") == "still" })
	link.Cut()
	for range 2 {
		if !r.Responds(t.Context(), "one") {
			t.Error("a member counts as silent although one of its two agents responds")
		}
	}
	if got := hear(t, r, "one", "a"); got != "well" {
		t.Errorf("heard %q, want the agent that responds", got)
	}
}

func TestResponds_TrueForMemberWithoutSession(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	if !r.Responds(t.Context(), "nobody") || !r.LastSessionChange("nobody").IsZero() {
		t.Error("it counts as unresponsive")
	}
}

// A request waits on a connection in one session. That another session of the member responds does
// not help it.
func TestResponds_OfConnectionIsThatOfItsSession(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("first")})
	second := joinOver(t, r, map[string]tunnel.Target{"a": says("second")})
	eventually(t, func() bool { return hear(t, r, "one", "a") == "second" })
	before, err := r.DialMember(t.Context(), "one", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	joined := r.LastSessionChange("one")
	second.Cut()
	eventually(t, func() bool { return !responds(t, before) })
	if !r.LastSessionChange("one").After(joined) {
		t.Error("requests still use connections of the silent session")
	}
	if !r.Responds(t.Context(), "one") {
		t.Error("the member counts as silent although one of its sessions responds")
	}
}

func responds(t *testing.T, conn net.Conn) bool {
	t.Helper()
	return conn.(interface {
		Responds(ctx context.Context) bool
	}).Responds(t.Context())
}

func TestLastSessionChange_AfterNewSession(t *testing.T) {
	ca := newAuthority(t)
	one, _ := startReplica(t, "gateway-1", ca)
	two, _ := startReplica(t, "gateway-2", ca)
	one.addresses <- serving(two.address)
	tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{"a": says("slow")})
	tunneltest.Eventually(t, "the member can be reached from the first gateway", func() bool { return one.Reachable("member") })
	here, relayed := two.LastSessionChange("member"), one.LastSessionChange("member")
	tunneltest.Join(t, two.Registry, "member", map[string]tunnel.Target{"a": says("fast")})
	tunneltest.Eventually(t, "the gateway uses new connections", func() bool { return two.LastSessionChange("member").After(here) })
	if got := hear(t, two.Registry, "member", "a"); got != "fast" {
		t.Errorf("new requests use the %s session", got)
	}
	tunneltest.Eventually(t, "so does the gateway that forwards to it", func() bool { return one.LastSessionChange("member").After(relayed) })
}

func TestDialEagerly_FailsIfAgentDoesNotRespond(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("here")})
	link.Cut()
	conn, err := r.DialEagerly(t.Context(), "one", "a")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, tunnel.ErrUnresponsive) {
		t.Errorf("reading: %v, want ErrUnresponsive", err)
	}
}
