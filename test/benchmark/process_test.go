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

// cpuOf is what a process has used so far. The kernel tells it in hundredths of a
// second: add up many.
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The second field is the program's name in parentheses and may hold anything.
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

// residentOf is the memory, in bytes, that a process has of the machine now.
func residentOf(b *testing.B, pid int) int64 {
	b.Helper()
	resident, _ := memoryOf(b, pid)
	return resident
}

// memoryOf is that, and how much of it is pages of files, such as the program's own: the machine
// shares these among processes, and takes them back when it is short of memory.
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
