// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
)

// chooserVariable makes the test binary a process that finds so many ports, prints them, and runs
// until its input ends.
const chooserVariable = "FLEETGATE_TEST_PORTS"

func TestMain(m *testing.M) {
	n, err := strconv.Atoi(os.Getenv(chooserVariable))
	if err != nil {
		os.Exit(m.Run())
	}
	ports, err := FreePorts(n)
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(ports); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// chooser is another process that finds ports.
type chooser struct {
	ports []int
	end   func()
}

func choose(t *testing.T, n int) func() chooser {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), chooserVariable+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	for _, err := range []error{inErr, outErr, cmd.Start()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() chooser {
		t.Helper()
		var ports []int
		if err := json.NewDecoder(out).Decode(&ports); err != nil {
			t.Fatal(err)
		}
		return chooser{ports, func() {
			t.Helper()
			_ = in.Close()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
		}}
	}
}

// manyPorts are so many that two processes which choose without regard to each other would choose some twice.
const manyPorts = 800

func TestFreePorts_GivesProcessesThatChooseAtOnceDifferentPorts(t *testing.T) {
	first, second := choose(t, manyPorts), choose(t, manyPorts)
	seen := map[int]bool{}
	for _, c := range []chooser{first(), second()} {
		for _, port := range c.ports {
			if seen[port] {
				t.Errorf("port %d was found twice", port)
			}
			seen[port] = true
		}
		defer c.end()
	}
	if len(seen) != 2*manyPorts {
		t.Errorf("%d ports were found, want %d", len(seen), 2*manyPorts)
	}
}

func TestFreePorts_GivesEachPortOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 10 {
		ports, err := FreePorts(5)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if seen[port] {
				t.Errorf("port %d was found twice", port)
			}
			if !isFree(port) {
				t.Errorf("port %d is not free for its program", port)
			}
			seen[port] = true
		}
	}
}

func TestHoldPorts_KeepsPortsOfAProcessThatHasEnded(t *testing.T) {
	former := choose(t, manyPorts)()
	if err := HoldPorts(former.ports...); err != nil {
		t.Fatal(err)
	}
	former.end()
	later := choose(t, manyPorts)()
	defer later.end()
	for _, port := range later.ports {
		if slices.Contains(former.ports, port) {
			t.Errorf("port %d is held, and was found", port)
		}
	}
}
