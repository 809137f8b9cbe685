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

	"fleetgate.io/fleetgate/test/env"
)

const (
	supervisorName   = "supervisor"
	superviseCommand = "supervise"
	lookEvery        = time.Second
	// firstDelay lasts longer than it takes whoever stops a process to take its record away.
	firstDelay   = 2 * time.Second
	longestDelay = time.Minute
)

// supervisorProcess is the process of this program that supervises the fleet in a folder for
// as long as the fleet is up.
func supervisorProcess(dir string) (*env.Process, error) {
	dir, err := filepath.Abs(dir) // It works in that folder, and is told its name.
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return env.NewProcess(env.ProcessOptions{Name: supervisorName, Dir: dir, Path: program, Args: []string{"-dir=" + dir, superviseCommand}, Detached: true})
}

// supervisor starts what has ended of a fleet although nobody stopped it: who stops a process
// takes its record away.
type supervisor struct {
	dir string
	log io.Writer
	// fallen are the processes that have ended at some time, by the path of their log.
	fallen map[string]*fall
}

// fall is what is known of a process that has ended.
type fall struct {
	// due is when it is to be started; zero while it runs.
	due time.Time
	// begun is when it was started last, by us.
	begun time.Time
	delay time.Duration
}

// supervise returns when ctx ends or the folder is gone.
func supervise(ctx context.Context, dir string) error {
	s := &supervisor{dir: dir, log: os.Stdout, fallen: map[string]*fall{}}
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

// look finds what has ended, and starts it once it is due.
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
			s.say(now, fmt.Sprintf("%s has ended, and is started again in %s: its log is %s", p.Name(), of.delay, p.LogPath()))
		case !now.Before(of.due):
			of.due, of.begun = time.Time{}, now
			if err := p.Start(ctx); err != nil {
				s.say(now, err.Error())
			}
		}
	}
	return nil
}

// fell doubles the wait of what ends soon after it was started.
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
