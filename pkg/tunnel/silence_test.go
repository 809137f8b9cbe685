// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"errors"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

func TestAnswers_UnresponsiveAgentIsRefusedUntilItRecovers(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("here"), "echo": echo})
	before, err := r.DialMember(t.Context(), "one", "echo")
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	link.Cut()
	eventually(t, func() bool { return !r.Answers(t.Context(), "one") })
	if r.Departed("one").IsZero() {
		t.Error("connections of the previous session are still used")
	}
	if !r.Connected("one") {
		t.Error("its tunnel has ended")
	}
	if _, err := r.DialMember(t.Context(), "one", "a"); !errors.Is(err, tunnel.ErrSilent) || !tunnel.IsNotConnected(err) {
		t.Errorf("dialing: %v, want ErrSilent and ErrNotConnected", err)
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
	answer := make([]byte, len("still here"))
	if _, err := before.Read(answer); err != nil || string(answer) != "still here" {
		t.Errorf("the open stream continued with %q, %v", answer, err)
	}
}

func TestAnswers_DialSkipsUnresponsiveAgent(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	tunneltest.Join(t, r, "one", map[string]tunnel.Target{"a": says("well")})
	link := joinOver(t, r, map[string]tunnel.Target{"a": says("still"), "echo": echo})
	eventually(t, func() bool { return hear(t, r, "one", "a") == "still" })
	link.Cut()
	for range 2 {
		if !r.Answers(t.Context(), "one") {
			t.Error("a member counts as silent although one of its two agents responds")
		}
	}
	if got := hear(t, r, "one", "a"); got != "well" {
		t.Errorf("heard %q, want the agent that responds", got)
	}
}

func TestAnswers_TrueForMemberWithoutSession(t *testing.T) {
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	if !r.Answers(t.Context(), "nobody") || !r.Departed("nobody").IsZero() {
		t.Error("it is doubted")
	}
}
