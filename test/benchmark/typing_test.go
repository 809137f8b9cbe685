// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/remotecommand"
)

const (
	// typists is the number of parallel commands.
	typists = 1000
	// keys is the number of keys that each types, one per pause.
	keys  = 6
	pause = 5 * time.Second
)

// typist is a user at the terminal of a command that echoes its input.
type typist struct {
	keyboard *io.PipeWriter
	shown    chan struct{}
}

// Write receives the output of the command.
func (t *typist) Write(letters []byte) (int, error) {
	for range letters {
		t.shown <- struct{}{}
	}
	return len(letters), nil
}

// press returns the time until a letter was echoed.
func (t *typist) press(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if _, err := t.keyboard.Write([]byte("x")); err != nil {
		return 0, fmt.Errorf("typing: %w", err)
	}
	select {
	case <-t.shown:
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// sit runs a command and returns once it echoes. The command ends when the keyboard is closed;
// ended receives its result.
func sit(ctx context.Context, e *entrance, ended *errgroup.Group) (*typist, error) {
	executor, err := commandOf(e)
	if err != nil {
		return nil, err
	}
	read, keyboard := io.Pipe()
	t := &typist{keyboard: keyboard, shown: make(chan struct{}, 1)}
	ended.Go(func() error {
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: read, Stdout: t})
		_ = read.CloseWithError(io.ErrClosedPipe) // Unblock writers that still type.
		return err
	})
	_, err = t.press(ctx)
	return t, err
}

// typing measures the latency of a key for 1,000 users at once in their containers, from the key to
// its echo. Each types one key in five seconds, at a random time.
func (p *proxyBed) typing(b *testing.B, e *entrance) {
	for b.Loop() {
		heard, err := typeAtOnce(b.Context(), e)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(milliseconds(heard.quantile(0.5)), "echo-p50-ms")
		b.ReportMetric(milliseconds(heard.quantile(0.99)), "echo-p99-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// typeAtOnce starts all commands, types into them, and ends them, also after an error.
func typeAtOnce(ctx context.Context, e *entrance) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var ended errgroup.Group
	all, err := sitDown(ctx, e, &ended)
	var heard *result
	if err == nil {
		heard, err = typeAll(ctx, all)
	}
	if err != nil {
		cancel() // Unblock those who wait for a letter.
	}
	for _, t := range all {
		if t != nil {
			_ = t.keyboard.Close()
		}
	}
	return heard, errors.Join(err, ended.Wait())
}

// sitDown starts the commands of all typists.
func sitDown(ctx context.Context, e *entrance, ended *errgroup.Group) ([]*typist, error) {
	all := make([]*typist, typists)
	var group errgroup.Group
	group.SetLimit(16)
	for i := range all {
		group.Go(func() (err error) {
			all[i], err = sit(ctx, e, ended)
			return err
		})
	}
	return all, group.Wait()
}

// typeAll types all keys of everybody.
func typeAll(ctx context.Context, all []*typist) (*result, error) {
	heard, begin := &result{took: make([]time.Duration, len(all)*keys)}, time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for i, t := range all {
		group.Go(func() error {
			for n := range keys {
				due := begin.Add(time.Duration(n)*pause + rand.N(pause))
				if err := sleep(ctx, time.Until(due)); err != nil {
					return err
				}
				took, err := t.press(ctx)
				if err != nil {
					return err
				}
				heard.took[i*keys+n] = took
			}
			return nil
		})
	}
	return heard, group.Wait()
}

// sleep waits, or returns the error of a context that ended before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
