// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// patience bounds every wait before the measurement.
const patience = 2 * time.Minute

// startFleet runs a fleet for one group and stops it with the group. It keeps the logs of a failed
// group.
func startFleet(b *testing.B, group string, members ...string) *fleet.Fleet {
	b.Helper()
	return startFleetWith(b, group, fleet.Options{Members: members})
}

// startFleetWith is like startFleet, with options; Dir and BinDir must not be set.
func startFleetWith(b *testing.B, group string, options fleet.Options) *fleet.Fleet {
	b.Helper()
	home, err := env.Home()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(home, "benchmark", group)
	if err := prepare(dir); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if b.Failed() {
			b.Logf("The logs are below %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	options.Dir, options.BinDir = dir, filepath.Join(home, "bin")
	f, err := fleet.Start(b.Context(), options)
	if f != nil {
		b.Cleanup(func() {
			if err := f.Stop(context.Background()); err != nil {
				b.Error(err)
			}
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	return f
}

// prepare creates an empty directory. It removes files of an interrupted run, and fails if
// processes of one still run.
func prepare(dir string) error {
	processes, err := env.Processes(dir)
	if err != nil {
		return err
	}
	for _, p := range processes {
		if p.Running() {
			return fmt.Errorf("%s runs in %s: another benchmark is running and would distort the figures of both", p.Name(), dir)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}
