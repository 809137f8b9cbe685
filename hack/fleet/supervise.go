// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	supervisorName   = "supervisor"
	superviseCommand = "supervise"
	lookEvery        = time.Second
	// firstDelay is longer than stopping a process and removing its record takes.
	firstDelay   = 2 * time.Second
	longestDelay = time.Minute
)

// supervisorProcess is the process of this program that supervises the fleet in a folder while the
// fleet is up.
func supervisorProcess(dir string) (*env.Process, error) {
	dir, err := filepath.Abs(dir) // The process runs in that folder and gets its name.
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return env.NewProcess(env.ProcessOptions{Name: supervisorName, Dir: dir, Path: program, Args: []string{"-dir=" + dir, superviseCommand}, Detached: true})
}

// supervisor restarts processes of a fleet that have ended by themselves. Stopping a process
// removes its record.
type supervisor struct {
	dir string
	log io.Writer
	// fallen are the processes that have ended at least once, by the path of their log.
	fallen map[string]*fall
}

// fall is the state of such a process.
type fall struct {
	// due is the time of the next start; zero while it runs.
	due time.Time
	// begun is the time of the last start by the supervisor.
	begun time.Time
	delay time.Duration
}

// supervise returns when ctx ends or the folder is gone.
func supervise(ctx context.Context, dir string) error {
	s := &supervisor{dir: dir, log: os.Stdout, fallen: map[string]*fall{}}
	// A process that has ended starts again on its ports.
	if err := fleet.HoldPorts(dir); err != nil {
		s.say(time.Now(), err.Error())
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err := s.look(ctx, now); err != nil {
				s.say(now, err.Error())
			}
		}
	}
}

// look finds ended processes, and starts each when it is due.
func (s *supervisor) look(ctx context.Context, now time.Time) error {
	processes, err := env.Processes(s.dir)
	if err != nil {
		return err
	}
	for _, p := range processes {
		of := s.fallen[p.LogPath()]
		if of == nil {
			of = &fall{}
			s.fallen[p.LogPath()] = of
		}
		switch {
		case p.Running():
			of.due = time.Time{}
		case of.due.IsZero():
			of.fell(now)
			s.say(now, fmt.Sprintf("%s has ended and restarts in %s; see its log %s", p.Name(), of.delay, p.LogPath()))
		case !now.Before(of.due):
			of.due, of.begun = time.Time{}, now
			if err := p.Start(ctx); err != nil {
				s.say(now, err.Error())
			}
		}
	}
	return nil
}

// fell doubles the delay of a process that ended soon after its start.
func (f *fall) fell(now time.Time) {
	f.delay = min(2*f.delay, longestDelay)
	if f.delay == 0 || now.Sub(f.begun) > 2*longestDelay {
		f.delay = firstDelay
	}
	f.due = now.Add(f.delay)
}

func (s *supervisor) say(now time.Time, what string) {
	_, _ = fmt.Fprintln(s.log, now.UTC().Format(time.RFC3339), what)
}
