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

// attributes puts a process into its own group, so that it and its children are signalled together.
// It does not end with the parent.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}

// birthOf identifies a process by its start time. It is empty for a process that has ended or is a
// zombie.
func birthOf(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	stat, started, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(stat, "Z") {
		return ""
	}
	return strings.TrimSpace(started)
}
