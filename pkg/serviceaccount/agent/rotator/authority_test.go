// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCAChanges_SignalEachNewCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, failure := "former", error(nil)
		changes := make(caChanges)
		signals := 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = changes.follow(ctx, func() ([]byte, error) { return []byte(ca), failure })
		}()
		go func() {
			for range changes {
				signals++
			}
		}()
		for _, step := range []struct {
			ca      string
			failure error
			want    int
		}{
			{ca: "former", want: 0},
			{ca: "new", want: 1},
			{ca: "new", want: 1},
			{failure: errors.New("the file is being replaced"), want: 1},
			{ca: "former and new", want: 2},
		} {
			ca, failure = step.ca, step.failure
			time.Sleep(2 * caInterval)
			synctest.Wait()
			if signals != step.want {
				t.Errorf("CA %q, error %v: got %d signals, want %d", step.ca, step.failure, signals, step.want)
			}
		}
		cancel()
		<-ended
		close(changes)
	})
}
