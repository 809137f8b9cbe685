// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
)

// machine is the first line that is printed. In the form "key: value" benchstat
// takes it for configuration, and never compares figures of different machines by
// mistake.
func machine() string {
	return fmt.Sprintf("machine: %s, %d cores, %s", runtime.Version(), runtime.GOMAXPROCS(0), memory())
}

var memTotal = regexp.MustCompile(`(?m)^MemTotal:\s+(\d+) kB$`)

// memory is known where the kernel tells it in a file.
func memory() string {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "unknown memory"
	}
	match := memTotal.FindSubmatch(info)
	if match == nil {
		return "unknown memory"
	}
	kib, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		return "unknown memory"
	}
	return fmt.Sprintf("%.0f GiB memory", math.Round(kib/(1<<20)))
}
