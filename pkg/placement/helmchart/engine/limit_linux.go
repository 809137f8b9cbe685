// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// limit makes the kernel enforce this process's limits, and kill it first if the machine runs out
// of memory, to protect the gateway.
//
// Writable memory counts against RLIMIT_DATA, but not when the Go runtime maps it over reserved
// addresses, so that alone would allow one large string of any size. Reserved addresses count
// against RLIMIT_AS, in large pieces. A Go program has some of both at its start, and the race
// detector needs much.
func limit() error {
	// Without that file the kernel does not use scores.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	reserved, writable, err := mapped()
	if err != nil {
		return err
	}
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_AS:   reserved + 2*helmchart.MaxMemory,
		syscall.RLIMIT_DATA: writable + helmchart.MaxMemory,
		syscall.RLIMIT_CPU:  uint64(helmchart.DefaultTimeout/time.Second) + 1,
		syscall.RLIMIT_CORE: 0,
	} {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("resource %d: %w", resource, err)
		}
	}
	return nil
}

// mapped returns the size of the process's address space, and of its writable part, in bytes.
func mapped() (all, writable uint64, err error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	var pages [6]uint64 // Size, resident, shared, text, lib, data and stack.
	if _, err := fmt.Sscan(string(text), &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]); err != nil {
		return 0, 0, fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	size := uint64(os.Getpagesize())
	return pages[0] * size, pages[5] * size, nil
}
