// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

const (
	// maxStack ends templates with infinite recursion before they fill memory.
	maxStack = 64 << 20
	// garbage is the share of its memory at which a rendering process collects aggressively.
	garbage = helmchart.MaxMemory / 4 * 3
)

// Serve is a rendering process: it reads one Release, limits itself, renders, and writes the
// Rendered. Nothing else may be written to out.
func Serve(in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(garbage)
	debug.SetMaxStack(maxStack)
	if err := limit(); err != nil {
		return fmt.Errorf("limiting what a rendering process may take: %w", err)
	}
	var release helmchart.Release
	if err := json.NewDecoder(in).Decode(&release); err != nil {
		return fmt.Errorf("reading what to render: %w", err)
	}
	if err := json.NewEncoder(out).Encode(Render(&release)); err != nil {
		return fmt.Errorf("writing what was rendered: %w", err)
	}
	return nil
}
