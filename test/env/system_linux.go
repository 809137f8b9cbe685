// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// attributes puts a process into a group of its own, so that it and its children are
// signalled together, and ties it to our life unless it is detached. The tie holds the
// process itself: children that it forks have to look after themselves when we are killed.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// birthOf tells one process from a later one with the same id: the boot and the tick at
// which it started. It is empty for a process that is gone or only waits to be reaped.
func birthOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in parentheses and may hold anything.
	_, rest, found := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := strings.Fields(string(rest))
	const state, started = 0, 19
	if !found || len(fields) <= started || fields[state] == "Z" || fields[state] == "X" {
		return ""
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[started]
}
