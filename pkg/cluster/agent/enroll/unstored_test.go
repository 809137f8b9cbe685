// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

func TestEnroller_UsesRenewedTokenThatMemberDoesNotStore(t *testing.T) {
	tokens := newTokenHub()
	server := httptest.NewTLSServer(tokens)
	defer server.Close()
	member, clock := fake.NewClientset(), testingclock.NewFakeClock(time.Now())
	e := New(Options{Member: member, Clock: clock})
	if err := e.store.putCredential(t.Context(), &credential{hubAddress: addressOf(server), member: "m", token: "stored", expires: tokens.expires}); err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	down.Store(true)
	unavailable := errors.New("failed calling webhook")
	member.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, unavailable
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	token, err := e.Token(t.Context())
	if err != nil || token != "stored+" {
		t.Errorf("the token is %q (%v), want the renewed one", token, err)
	}
	if err := e.Ready(); err != nil {
		t.Errorf("the agent is not ready: %v", err)
	}
	if err := e.Unstored(); !errors.Is(err, unavailable) {
		t.Errorf("Unstored() = %v, want %v", err, unavailable)
	}
	if stored, err := e.store.credential(t.Context()); err != nil || stored.token != "stored" {
		t.Errorf("the member stores %+v (%v), want the former token", stored, err)
	}

	down.Store(false)
	for e.Unstored() != nil { // The retry comes long before a renewal is due.
		if clock.HasWaiters() {
			clock.Step(recheckInterval)
		}
		time.Sleep(time.Millisecond)
	}
	want, err := e.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stored, err := e.store.credential(t.Context()); err != nil || stored.token != want {
		t.Errorf("the member stores %+v (%v), want token %q", stored, err, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}
