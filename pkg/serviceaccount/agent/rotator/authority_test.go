// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestCAChanges_SignalEachNewCA(t *testing.T) {
	type read struct {
		ca  string
		err error
	}
	synctest.Test(t, func(t *testing.T) {
		var file atomic.Pointer[read]
		file.Store(&read{ca: "former"})
		changes := make(caChanges)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = changes.follow(ctx, func() ([]byte, error) { now := file.Load(); return []byte(now.ca), now.err })
		}()
		var signals atomic.Int32
		go func() {
			for range changes {
				signals.Add(1)
			}
		}()
		synctest.Wait() // Until the first CA is known.
		for _, step := range []struct {
			read read
			want int32
		}{
			{read: read{ca: "former"}, want: 0},
			{read: read{ca: "new"}, want: 1},
			{read: read{ca: "new"}, want: 1},
			{read: read{err: errors.New("the file is being replaced")}, want: 1},
			{read: read{ca: "former and new"}, want: 2},
		} {
			file.Store(&step.read)
			time.Sleep(2 * caInterval)
			synctest.Wait()
			if got := signals.Load(); got != step.want {
				t.Errorf("CA %q, error %v: got %d signals, want %d", step.read.ca, step.read.err, got, step.want)
			}
		}
		cancel()
		<-ended
		close(changes)
	})
}
