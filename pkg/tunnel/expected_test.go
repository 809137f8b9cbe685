// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/tls"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// begun is a registry that has been running for longer than any member is expected to reconnect.
func begun(t *testing.T) *Registry {
	t.Helper()
	r, err := NewRegistry(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Expected("member") {
		t.Error("A gateway that has just started does not expect its members")
	}
	time.Sleep(expectedFor + time.Second)
	if r.Expected("member") {
		t.Error("a member that never connected is expected")
	}
	return r
}

// wantExpected checks that the member counts as lost recently.
func wantExpected(t *testing.T, r *Registry, how string) {
	t.Helper()
	time.Sleep(reconnectWithin - time.Second)
	if !r.Expected("member") {
		t.Errorf("%s: clients do not get a retriable error.", how)
	}
	time.Sleep(2 * time.Second)
	if r.Expected("member") {
		t.Errorf("%s: clients still get a retriable error.", how)
	}
}

func TestExpected_ForAMomentAfterMemberWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begun(t)
		s := &session{member: "member", meter: r.metrics.of("member")}
		if err := r.add(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		r.remove(s)
		wantExpected(t, r, "its agent has gone")
	})
}

func TestExpected_WhenTheGatewayThatHeldMemberStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begun(t)
		p := NewPeers(r, PeerOptions{Name: "one", Certificate: func() (*tls.Certificate, error) { return nil, nil }})
		p.add("two", &peerLink{members: map[string]struct{}{"member": {}}})
		p.remove("two")
		wantExpected(t, r, "the gateway that held it has gone")
	})
}

func TestExpected_ForgetsMembersThatNeverReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &sessionChanges{}
		for i := range 1000 {
			d.note(strconv.Itoa(i), time.Now())
			time.Sleep(time.Second)
		}
		if kept := len(d.lost) + len(d.before); kept > 3*int(expectedFor/time.Second) {
			t.Errorf("%d members are kept", kept)
		}
		if !d.recent("998", time.Now()) || d.recent("900", time.Now()) {
			t.Error("the wrong members are kept")
		}
		if d.last("980").IsZero() {
			t.Error("a member whose session may still drain is forgotten")
		}
	})
}
