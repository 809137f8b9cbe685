// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// mover is an Enroller that is enrolled with a hub.
type mover struct {
	*Enroller
	*testing.T
	tokens *tokenHub
}

func newMover(t *testing.T, at *httptest.Server, tokens *tokenHub) *mover {
	t.Helper()
	e := New(Options{Member: fake.NewClientset()})
	first := &credential{hubAddress: addressOf(at), member: "m", token: "stored", expires: time.Now().Add(time.Hour)}
	if err := e.use(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	<-tokens.granted
	return &mover{Enroller: e, T: t, tokens: tokens}
}

func addressOf(server *httptest.Server) hubAddress {
	return hubAddress{server: server.URL, ca: []byte(caOf(server))}
}

// isAt fails the test if the credential in use or in the store has another address, or another
// previous one.
func (m *mover) isAt(server *httptest.Server, previous, origin *httptest.Server) {
	m.Helper()
	stored, err := m.store.credential(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	for where, c := range map[string]*credential{"in use": m.current.Load(), "stored": stored} {
		if !c.equal(addressOf(server)) {
			m.Errorf("the credential %s leads to %s, not to %s", where, c.server, server.URL)
		}
		for what, pair := range map[string]struct {
			got  *hubAddress
			want *httptest.Server
		}{"previous": {c.previous, previous}, "origin": {c.origin, origin}} {
			if (pair.got == nil) != (pair.want == nil) || pair.got != nil && !pair.got.equal(addressOf(pair.want)) {
				m.Errorf("%s of the credential %s is %v", what, where, pair.got)
			}
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestMove_SwitchesURLsAndReturnsWhenTheNewOneFails(t *testing.T) {
	tokens := newTokenHub()
	first, second := httptest.NewTLSServer(tokens), httptest.NewTLSServer(tokens)
	defer first.Close()
	m := newMover(t, first, tokens)
	moved := m.Moved()
	if err := m.Move(t.Context(), first.URL, []byte(caOf(first))); err != nil || isClosed(moved) {
		t.Errorf("it moved to where it is: %v", err)
	}
	m.isAt(first, nil, nil)

	if err := m.Move(t.Context(), second.URL, []byte(caOf(second))); err != nil {
		t.Fatal(err)
	}
	<-tokens.granted
	if !isClosed(moved) || isClosed(m.Moved()) {
		t.Error("Moved was not closed, or the next one was closed too")
	}
	m.isAt(second, first, first)
	if m.Origin() != first.URL {
		t.Errorf("the origin is %s", m.Origin())
	}

	second.Close()
	moved = m.Moved()
	if err := m.renewCurrent(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-tokens.granted
	if !isClosed(moved) {
		t.Error("Moved was not closed after the return")
	}
	m.isAt(first, nil, first)
}

func TestEnroller_DropsTheFormerURLOnceTheNewOneIsProven(t *testing.T) {
	tokens := newTokenHub()
	first, second := httptest.NewTLSServer(tokens), httptest.NewTLSServer(tokens)
	defer first.Close()
	m := newMover(t, first, tokens)
	if err := m.Move(t.Context(), second.URL, []byte(caOf(second))); err != nil {
		t.Fatal(err)
	}
	<-tokens.granted
	if err := m.renewCurrent(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-tokens.granted
	m.isAt(second, nil, first)
	second.Close()
	if err := m.renewCurrent(t.Context()); refusal.ReasonOf(err) != HubUnreachable {
		t.Errorf("a hub that is down: %v", err)
	}
	m.isAt(second, nil, first)
}

func TestMove_StaysWhenTheNewURLIsNotTheHub(t *testing.T) {
	tokens := newTokenHub()
	first, second, closed := httptest.NewTLSServer(tokens), httptest.NewTLSServer(tokens), httptest.NewTLSServer(tokens)
	defer first.Close()
	defer second.Close()
	closed.Close()
	m := newMover(t, first, tokens)
	for name, to := range map[string]hubAddress{
		"plain HTTP":    {server: "http://hub"},
		"no URL":        {server: "hub:6443", ca: []byte(caOf(second))},
		"an invalid CA": {server: second.URL, ca: []byte("none")},
		"another CA":    {server: second.URL},
		"no server":     addressOf(closed),
	} {
		moved := m.Moved()
		if err := m.Move(t.Context(), to.server, to.ca); err == nil || isClosed(moved) {
			t.Errorf("%s: it moved, %v", name, err)
		}
		m.isAt(first, nil, nil)
	}
}

func TestMove_StaysWhenProveFails(t *testing.T) {
	tokens := newTokenHub()
	first, second := httptest.NewTLSServer(tokens), httptest.NewTLSServer(tokens)
	defer first.Close()
	defer second.Close()
	m := newMover(t, first, tokens)
	refuses := errors.New("no upgrade passes")
	m.options.Prove = func(_ context.Context, hub *rest.Config, member string) error {
		if hub.Host != second.URL || hub.BearerToken == "" || member != "m" {
			t.Errorf("it proves %s to %q", hub.Host, member)
		}
		return refuses
	}
	moved := m.Moved()
	if err := m.Move(t.Context(), second.URL, []byte(caOf(second))); !errors.Is(err, refuses) || isClosed(moved) {
		t.Errorf("it moved: %v", err)
	}
	token := <-tokens.granted
	m.isAt(first, nil, nil)
	if got := m.current.Load().token; got != token {
		t.Errorf("its token is %q, the hub has granted %q last", got, token)
	}
	refuses = nil
	if err := m.Move(t.Context(), second.URL, []byte(caOf(second))); err != nil {
		t.Fatal(err)
	}
	m.isAt(second, first, first)
}

func TestReach_IgnoresTheValuesOfTheRegistration(t *testing.T) {
	first, second, third := hubAddress{server: "https://first"}, hubAddress{server: "https://second"}, hubAddress{server: "https://third"}
	stored := &credential{hubAddress: second, previous: &first, origin: &first}
	values := func(h hubAddress) *Bootstrap {
		b := &Bootstrap{}
		b.APIServerURL = h.server
		return b
	}
	if got := reach(stored, values(first)); got.server != second.server || got.previous == nil {
		t.Errorf("values with which it registered lead to %s", got.server)
	}
	if got := reach(stored, values(third)); got.server != third.server || got.previous != nil || got.origin != nil {
		t.Errorf("other values lead to %s", got.server)
	}
}
