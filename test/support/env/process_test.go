// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
)

// childEnv makes the test binary run the test that panics.
const childEnv = "FLEETGATE_ENV_TEST_CHILD"

// shell prepares a process that runs a script.
func shell(t *testing.T, script string, change ...func(*env.ProcessOptions)) *env.Process {
	t.Helper()
	o := env.ProcessOptions{Name: "shell", Dir: t.TempDir(), Path: "/bin/sh", Args: []string{"-c", script}}
	for _, c := range change {
		c(&o)
	}
	p, err := env.NewProcess(o)
	if err != nil {
		t.Fatalf("NewProcess: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Errorf("Kill: %v", err)
		}
	})
	return p
}

// says returns a Ready that waits until the log contains a word.
func says(word string) func(o *env.ProcessOptions) {
	return func(o *env.ProcessOptions) {
		log := filepath.Join(o.Dir, o.Name+".log")
		o.Ready = func(context.Context) error {
			data, err := os.ReadFile(log)
			if err == nil && !strings.Contains(string(data), word) {
				err = errors.New("the word is missing")
			}
			return err
		}
	}
}

func start(t *testing.T, p *env.Process) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatalf("Start: %v", err)
	}
}

// isGone reports whether the process group has ended.
func isGone(group int) bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

// expectGone waits until the kernel has reaped processes that were killed with their parent.
func expectGone(t testing.TB, group int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !isGone(group); {
		if time.Now().After(deadline) {
			t.Fatalf("process group %d is left behind", group)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestFailedStartTellsProgramExitAndLog(t *testing.T) {
	p := shell(t, "echo unknown flag --colour; exit 3", says("never"))
	err := p.Start(t.Context())
	var failed *env.StartError
	if !errors.As(err, &failed) {
		t.Fatalf("Start: got %v, want a StartError", err)
	}
	for _, want := range []string{"starting shell", "exit status 3", p.LogPath(), "unknown flag --colour"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Start: error %q does not tell %q", err, want)
		}
	}
}

func TestStartThatIsNotReadyInTimeLeavesNothing(t *testing.T) {
	p := shell(t, "echo hello; exec sleep 1000", says("never"), func(o *env.ProcessOptions) {
		o.StartTimeout = 200 * time.Millisecond
	})
	if err := p.Start(t.Context()); err == nil {
		t.Fatal("Start: want an error")
	}
	if p.Running() || !isGone(p.PID()) {
		t.Error("the process still runs")
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := shell(t, "exec sleep 1000", func(o *env.ProcessOptions) {
		o.Ready = func(context.Context) error { cancel(); return errors.New("not yet") }
	})
	if err := p.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Start: got %v, want context.Canceled", err)
	}
	if p.Running() || !isGone(p.PID()) {
		t.Error("the process still runs")
	}
}

func TestSecondStartIsRefused(t *testing.T) {
	p := shell(t, "exec sleep 1000")
	start(t, p)
	if err := p.Start(t.Context()); err == nil {
		t.Error("Start: want an error while it runs")
	}
}

func TestStopEnds(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		before func(*env.Process) error
	}{
		"a process that obeys": {
			reason: "SIGTERM is enough",
			script: "echo up; exec sleep 1000",
		},
		"a process that ignores SIGTERM": {
			reason: "after the grace it is killed, and its children with it",
			script: "trap '' TERM; echo up; while :; do sleep 1000; done",
		},
		"a frozen process": {
			reason: "it is thawed to end",
			script: "echo up; exec sleep 1000",
			before: (*env.Process).Freeze,
		},
		"a process with children": {
			reason: "the whole group is signalled",
			script: "sleep 1000 & sleep 1000 & echo up; wait",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := shell(t, tc.script, says("up"), func(o *env.ProcessOptions) { o.Grace = 300 * time.Millisecond })
			start(t, p)
			if tc.before != nil {
				if err := tc.before(p); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Fatalf("%s: Stop: %v", tc.reason, err)
			}
			if p.Running() {
				t.Errorf("%s: it still runs", tc.reason)
			}
			expectGone(t, p.PID())
		})
	}
}

func TestRestartAfterKillKeepsTheLog(t *testing.T) {
	p := shell(t, "echo started; touch up; exec sleep 1000", func(o *env.ProcessOptions) {
		up := filepath.Join(o.Dir, "up")
		o.Ready = func(context.Context) error { return os.Remove(up) }
	})
	start(t, p)
	first := p.PID()
	if err := p.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if p.PID() == first || !p.Running() {
		t.Errorf("process %d runs: %v, want another than %d", p.PID(), p.Running(), first)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	log, err := os.ReadFile(p.LogPath())
	if got := strings.Count(string(log), "started"); err != nil || got != 2 {
		t.Errorf("log has %d starts (%v), want 2", got, err)
	}
}

func TestWaitTellsHowItEnded(t *testing.T) {
	p := shell(t, "exit 7")
	start(t, p)
	var exit *exec.ExitError
	if err := p.Wait(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("Wait: got %v, want exit code 7", err)
	}
}

func TestRecordedProcessIsFoundAndStopped(t *testing.T) {
	started := shell(t, "echo up; exec sleep 1000", says("up"), func(o *env.ProcessOptions) { o.Detached = true })
	start(t, started)
	found, err := env.Processes(filepath.Dir(started.LogPath()))
	if err != nil || len(found) != 1 {
		t.Fatalf("Processes: got %v, %v, want one", found, err)
	}
	again := found[0]
	if !again.Running() || again.PID() != started.PID() || again.Name() != "shell" {
		t.Fatalf("found %s with process id %d, running %v", again.Name(), again.PID(), again.Running())
	}
	if err := again.Restart(t.Context()); err != nil {
		t.Fatalf("Restart: %v", err)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if started.Running() || again.Running() {
		t.Error("the process still runs")
	}
	if left, err := env.Processes(filepath.Dir(started.LogPath())); err != nil || len(left) != 0 {
		t.Errorf("Processes after Stop: got %v, %v, want none", left, err)
	}
}

func TestProcessIDThatWasGivenToAnotherIsLeftAlone(t *testing.T) {
	bystander := shell(t, "exec sleep 1000")
	start(t, bystander)
	dir := t.TempDir()
	stale := fmt.Sprintf(`{"pid": %d, "birth": "an earlier boot/1", "path": "/bin/sh"}`, bystander.PID())
	if err := os.WriteFile(filepath.Join(dir, "gone.process.json"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := env.NewProcess(env.ProcessOptions{Name: "gone", Dir: dir})
	if err != nil {
		t.Fatalf("NewProcess: %v", err)
	}
	if p.Running() {
		t.Error("a stranger was taken for the recorded process")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if !bystander.Running() {
		t.Error("a stranger was stopped")
	}
}

func TestProcessDiesWithATestThatPanics(t *testing.T) {
	for _, group := range panickingChild(t, "TestChildThatPanics") {
		expectGone(t, group)
	}
}

func TestDetachedProcessOutlivesTheTestThatPanics(t *testing.T) {
	dir := t.TempDir()
	if out, err := runChild(t, "TestChildThatDetaches", dir); err == nil {
		t.Fatalf("the child did not panic:\n%s", out)
	}
	p, err := env.NewProcess(env.ProcessOptions{Name: "shell", Dir: dir})
	if err != nil {
		t.Fatalf("NewProcess: %v", err)
	}
	if !p.Running() {
		t.Error("the process does not run")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	expectGone(t, p.PID())
}

// TestChildThatPanics is run by another test.
func TestChildThatPanics(t *testing.T) {
	childArgument(t)
	p := shell(t, "echo up; exec sleep 1000", says("up"))
	start(t, p)
	fmt.Printf("group %d\n", p.PID())
	panicBeyondTheTest()
}

// TestChildThatDetaches is run by another test.
func TestChildThatDetaches(t *testing.T) {
	dir := childArgument(t)
	start(t, shell(t, "exec sleep 1000", func(o *env.ProcessOptions) { o.Dir, o.Detached = dir, true }))
	panicBeyondTheTest()
}

// childArgument is the argument of runChild. A test that needs it is skipped without.
func childArgument(t *testing.T) string {
	t.Helper()
	argument := os.Getenv(childEnv)
	if argument == "" {
		t.Skip("another test runs this one in a process of its own")
	}
	return argument
}

// panicBeyondTheTest panics in a goroutine, where no deferred call or cleanup of a test runs.
func panicBeyondTheTest() {
	go panic("as a careless test would")
	select {}
}

// runChild runs one test of this binary in another process.
func runChild(t testing.TB, test, argument string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+argument)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// panickingChild runs one test of this binary that panics, and returns the process groups that it
// printed.
func panickingChild(t testing.TB, test string) []int {
	t.Helper()
	out, err := runChild(t, test, "panic")
	if err == nil || !strings.Contains(out, "as a careless test would") {
		t.Fatalf("the child did not panic: %v\n%s", err, out)
	}
	var groups []int
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		if number, ok := strings.CutPrefix(s.Text(), "group "); ok {
			group, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			groups = append(groups, group)
		}
	}
	if len(groups) == 0 {
		t.Fatalf("the child started nothing:\n%s", out)
	}
	return groups
}
