// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
)

var errWork = errors.New("work failed")

// The end of do releases the elector. The order in which the two are noticed must not matter, so the
// test repeats it many times.
func TestExclusively_ReturnsResult(t *testing.T) {
	for name, want := range map[string]error{"done": nil, "failed": errWork} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			for range 20 {
				err := Exclusively(t.Context(), client, "ns", "a", func(context.Context) error { return want })
				if !errors.Is(err, want) {
					t.Fatalf("got %v, want %v", err, want)
				}
			}
		})
	}
}

func TestExclusively_WaitsForDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		err := Exclusively(ctx, fake.NewClientset(), "ns", "a", func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			time.Sleep(time.Minute)
			ended = true
			return ctx.Err()
		})
		if !ended || !errors.Is(err, context.Canceled) {
			t.Errorf("returned %v, work ended: %v", err, ended)
		}
	})
}

func TestExclusively_RunsOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, inside, most, done := fake.NewClientset(), make(chan struct{}, 10), 0, make(chan error)
		for _, identity := range []string{"a", "b", "c"} {
			go func() {
				done <- Exclusively(t.Context(), client, "ns", identity, func(context.Context) error {
					inside <- struct{}{}
					most = max(most, len(inside))
					time.Sleep(time.Minute)
					<-inside
					return nil
				})
			}()
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most != 1 {
			t.Errorf("%d ran concurrently", most)
		}
	})
}

func TestExclusively_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, holding, release, ended := fake.NewClientset(), make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			ended <- Exclusively(t.Context(), client, "ns", "holder", func(context.Context) error {
				close(holding)
				<-release
				return nil
			})
		}()
		<-holding
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Exclusively(ctx, client, "ns", "other", func(context.Context) error {
			t.Error("ran while another one did")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
