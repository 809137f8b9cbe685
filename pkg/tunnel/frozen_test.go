// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// A frozen replica closes no connection. Requests through the others are answered or rejected within
// three seconds, of which their connection to the member may take all.
func TestDialMember_EndsWithinThreeSecondsWhileReplicaIsFrozen(t *testing.T) {
	const limit, both, alone = 3 * time.Second, "member-of-both", "member-of-frozen"
	synctest.Test(t, func(t *testing.T) {
		r, err := NewRegistry(Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := NewPeers(r, PeerOptions{Name: "gateway-1"})
		link := func(name string, members ...string) (far net.Conn) {
			near, far := net.Pipe()
			l := &peerLink{session: &nativeSession{Multiplexer: native.New(near, native.Gateway, native.Options{})}, members: map[string]struct{}{}}
			for _, member := range members {
				l.members[member] = struct{}{}
			}
			p.add(name, l)
			t.Cleanup(func() { _ = l.session.Close() })
			return far
		}
		link("frozen", both, alone) // Nobody reads at the other end.
		live := native.New(link("live", both), native.Agent, native.Options{})
		t.Cleanup(func() { _ = live.Close() })
		go accept(live)
		for range 8 { // Replicas are tried in random order.
			began := time.Now()
			conn, err := r.DialMember(t.Context(), both, "a")
			if took := time.Since(began); err != nil || took > limit {
				t.Fatalf("dialing a member of both replicas: %v after %v", err, took)
			}
			_ = conn.Close()
		}
		began := time.Now()
		_, err = r.DialMember(t.Context(), alone, "a")
		if took := time.Since(began); !errors.Is(err, ErrUnresponsive) || took > limit {
			t.Errorf("dialing a member of the frozen replica: %v after %v, want ErrUnresponsive", err, took)
		}
	})
}

// accept connects every stream.
func accept(agent *native.Multiplexer) {
	for {
		stream, err := agent.Accept(context.Background())
		if err != nil {
			return
		}
		go func() {
			if _, err := readHeader(stream); err == nil {
				_, _ = stream.Write(encodeResponse(codeOK, ""))
			}
		}()
	}
}
