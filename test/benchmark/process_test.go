// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpuOf returns the CPU time of a process so far. The kernel counts hundredths of a second: add up
// many.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The second field is the program's name in parentheses, with any characters.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system, tick = 11, 12, 10 * time.Millisecond
	var ticks int64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// residentOf returns the resident memory of a process in bytes.
func residentOf(b *testing.B, pid int) int64 {
	b.Helper()
	resident, _ := memoryOf(b, pid)
	return resident
}

// memoryOf returns the resident memory, and how much of it is pages of files such as the program's
// own. Processes share these, and the kernel reclaims them.
func memoryOf(b *testing.B, pid int) (resident, files int64) {
	b.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		b.Fatal(err)
	}
	var pages [2]int64
	for nth, field := range strings.Fields(string(statm))[1:3] {
		if pages[nth], err = strconv.ParseInt(field, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	return pages[0] * int64(os.Getpagesize()), pages[1] * int64(os.Getpagesize())
}
