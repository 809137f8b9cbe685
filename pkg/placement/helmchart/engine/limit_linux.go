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

// limit has the kernel hold this process to its limits, and end it first if the machine is
// out of memory: the gateway has to live.
//
// What may be written counts against RLIMIT_DATA, but not yet when the Go runtime maps it
// over what it has reserved, so that one large text could be any size. What is reserved
// counts against RLIMIT_AS, in large pieces. Of both a Go program has some before it does
// anything, and one that looks for races has much.
func limit() error {
	// Where there is no such file, nobody chooses by it.
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

// mapped is how many bytes of addresses the process has, and to how many of them it may
// write.
func mapped() (all, writable uint64, err error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, err
	}
	var pages [6]uint64 // All, resident, shared, code, nothing, data and stack.
	if _, err := fmt.Sscan(string(text), &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5]); err != nil {
		return 0, 0, fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	size := uint64(os.Getpagesize())
	return pages[0] * size, pages[5] * size, nil
}
