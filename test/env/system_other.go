// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package env

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes puts a process into a group of its own, so that it and its children are
// signalled together. Nothing here ties a process to our life when we are killed.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// birthOf tells one process from a later one with the same id: the time at which it
// started. It is empty for a process that is gone or only waits to be reaped.
func birthOf(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	stat, started, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(stat, "Z") {
		return ""
	}
	return strings.TrimSpace(started)
}
