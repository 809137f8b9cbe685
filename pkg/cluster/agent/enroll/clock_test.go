// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	testingclock "k8s.io/utils/clock/testing"
)

func TestEnroller_ToleratesAClockThatIsTenMinutesOff(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			tokens := newTokenHub()
			server := httptest.NewTLSServer(tokens)
			defer server.Close()
			clock := testingclock.NewFakeClock(time.Now().Add(wrong))
			e := New(Options{Member: fake.NewClientset(), Clock: clock})
			if err := e.store.putCredential(t.Context(), &credential{hubAddress: addressOf(server), member: "m", token: "stored", expires: tokens.expires}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- e.Run(ctx) }()
			if _, err := e.Member(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-tokens.granted // it proves what it has
			for !clock.HasWaiters() {
				time.Sleep(time.Millisecond)
			}
			clock.Step(DefaultRenewInterval)
			<-tokens.granted
			if err := e.Ready(); err != nil {
				t.Errorf("it is not ready: %v", err)
			}
			cancel()
			if err := <-done; err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}
