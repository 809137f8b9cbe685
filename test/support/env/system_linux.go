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

// attributes puts a process into its own group, so that it and its children are signalled together.
// Unless detached, it ends with the parent; children that it forks do not.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// birthOf identifies a process: the boot and the tick of its start. It distinguishes it from a
// later process with the same ID. It is empty for a process that has ended or is a zombie.
func birthOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in parentheses, with any characters.
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
