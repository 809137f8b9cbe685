// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestDied_QuotesNothing(t *testing.T) {
	for complaint, want := range map[string]string{
		"fatal error: runtime: out of memory: hunter2":                            "within 256 MiB of memory",
		"runtime: mmap: cannot allocate memory\nhunter2":                          "within 256 MiB of memory",
		"runtime: goroutine stack exceeds 67108864-byte limit\nhunter2":           "without end",
		"reading what to render: hunter2":                                         "the rendering process ended with",
		"FATAL: ThreadSanitizer: failed to allocate hunter2 bytes of metaMap map": "the rendering process ended with",
	} {
		err := died(&exec.ExitError{}, complaint)
		if !errors.Is(err, ErrExhausted) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error of %q = %q, want %q", complaint, err, want)
		}
	}
	if err := died(exec.ErrNotFound, ""); errors.Is(err, ErrExhausted) {
		t.Errorf("error of a missing program = %q", err)
	}
}
