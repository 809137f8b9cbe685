// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
)

// supervised is a folder with one running process and its supervisor.
type supervised struct {
	*testing.T
	supervisor
	now time.Time
	log strings.Builder
}

func superviseOne(t *testing.T) *supervised {
	s := &supervised{T: t, now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	s.supervisor = supervisor{dir: t.TempDir(), log: &s.log, fallen: map[string]*fall{}}
	p, err := env.NewProcess(env.ProcessOptions{Name: "gateway", Dir: s.dir, Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range s.recorded() {
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *supervised) recorded() []*env.Process {
	s.Helper()
	all, err := env.Processes(s.dir)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// dies kills the process like a crash: its record stays.
func (s *supervised) dies() {
	s.Helper()
	p := s.recorded()[0]
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		s.Fatal(err)
	}
	if err := p.Wait(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// runs reports whether the process runs after a time in which the supervisor checked at start and
// end.
func (s *supervised) runs(after time.Duration) bool {
	s.Helper()
	for _, pass := range []time.Duration{0, after} {
		s.now = s.now.Add(pass)
		if err := s.look(s.Context(), s.now); err != nil {
			s.Fatal(err)
		}
	}
	all := s.recorded()
	return len(all) == 1 && all[0].Running()
}

func TestSupervisor_RestartsWithGrowingDelay(t *testing.T) {
	s := superviseOne(t)
	for _, delay := range []time.Duration{firstDelay, 2 * firstDelay, 4 * firstDelay} {
		s.dies()
		if s.runs(delay - time.Millisecond) {
			t.Errorf("it restarted before %s", delay)
		}
		if !s.runs(time.Millisecond) {
			t.Fatalf("it did not restart after %s", delay)
		}
		if want := "gateway has ended and restarts in " + delay.String(); strings.Count(s.log.String(), want) != 1 {
			t.Errorf("the log does not say %q once:\n%s", want, &s.log)
		}
	}
	if !s.runs(time.Hour) {
		t.Error("it no longer runs")
	}
	s.dies()
	if !s.runs(firstDelay) {
		t.Error("it ran for an hour and did not restart with the first delay")
	}
}

// The supervisor once looked for the project in its working folder, found none, and ended.
func TestSupervise_WorksFromAnyFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, []string{"-dir=" + dir, superviseCommand}); err != nil {
		t.Error(err)
	}
}

func TestSupervisor_BoundsDelay(t *testing.T) {
	of, now := fall{}, time.Now()
	for range 100 {
		of.begun = now
		of.fell(now)
	}
	if of.delay != longestDelay {
		t.Errorf("it waits for %s", of.delay)
	}
}

func TestSupervisor_KeepsStoppedProcessesStopped(t *testing.T) {
	for how, stop := range map[string]func(context.Context, *env.Process) error{
		"stopped": func(ctx context.Context, p *env.Process) error { return p.Stop(ctx) },
		"killed":  func(_ context.Context, p *env.Process) error { return p.Kill() },
	} {
		s := superviseOne(t)
		if !s.runs(longestDelay) {
			t.Fatal("it does not run")
		}
		if err := stop(t.Context(), s.recorded()[0]); err != nil {
			t.Fatal(err)
		}
		if s.runs(longestDelay) || len(s.recorded()) > 0 {
			t.Errorf("it was %s and restarted", how)
		}
		if s.log.Len() > 0 {
			t.Errorf("it was %s, and the log says:\n%s", how, &s.log)
		}
	}
}
