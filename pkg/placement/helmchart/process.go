// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Limits of one rendering. The process also enforces those of memory and CPU itself.
const (
	// DefaultTimeout limits the duration of a rendering.
	DefaultTimeout = 10 * time.Second
	// MaxMemory limits its memory, in addition to what it has at the start.
	MaxMemory = 256 << 20
	// maxOutput limits its output: the size of a Work, in a less compact encoding.
	maxOutput = 8 << 20
	// maxComplaint limits how much of a failed process's error output is read.
	maxComplaint = 64 << 10
)

// ErrExhausted is returned for a rendering that exceeded its time or memory.
var ErrExhausted = errors.New("the chart takes more than it may")

// Rendered is the output of a rendering process.
type Rendered struct {
	// Chart is the chart's name and version.
	Chart   string   `json:"chart"`
	Objects []Object `json:"objects,omitempty"`
	// Problem is why there are no objects, or nil.
	Problem *Problem `json:"problem,omitempty"`
}

// Process renders in a separate process, which reads the Release as JSON from its standard input,
// and writes its Rendered to its standard output. It gets no environment.
type Process struct {
	// Path is the program, Args are its arguments.
	Path string
	Args []string
	// Timeout limits the duration; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Render returns the rendered chart. The error is a Problem if the chart, or its values, are
// invalid, and wraps ErrExhausted if the rendering exceeded its limits.
func (p *Process) Render(ctx context.Context, r *Release) (*Rendered, error) {
	timeout := p.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	input, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a chart: %w", err)
	}
	stdout, stderr := &bounded{limit: maxOutput, full: cancel}, &bounded{limit: maxComplaint}
	command := exec.CommandContext(limited, p.Path, p.Args...)
	command.Env = []string{} // A nil slice would pass the gateway's own environment.
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), stdout, stderr
	command.WaitDelay = time.Second
	runErr := command.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case stdout.overflown:
		return nil, fmt.Errorf("%w: it renders to more than %d bytes", ErrExhausted, maxOutput)
	case limited.Err() != nil:
		return nil, fmt.Errorf("%w: it was not rendered within %s", ErrExhausted, timeout)
	case runErr != nil:
		return nil, died(runErr, stderr.kept.String())
	}
	var rendered Rendered
	if err := json.Unmarshal(stdout.kept.Bytes(), &rendered); err != nil {
		return nil, fmt.Errorf("reading the output of a rendering process: %w", err)
	}
	if rendered.Problem != nil {
		return nil, rendered.Problem
	}
	return &rendered, nil
}

// died returns why a process ended without an answer. Its error output may contain values, so it is
// inspected but never quoted.
func died(err error, stderr string) error {
	switch {
	case strings.Contains(stderr, "out of memory"), strings.Contains(stderr, "cannot allocate memory"):
		return fmt.Errorf("%w: it was not rendered within %d MiB of memory", ErrExhausted, MaxMemory>>20)
	case strings.Contains(stderr, "stack overflow"), strings.Contains(stderr, "stack exceeds"):
		return fmt.Errorf("%w: its templates call each other without end", ErrExhausted)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: the rendering process ended with %s", ErrExhausted, exit.ProcessState)
	}
	return fmt.Errorf("running a rendering process: %w", err)
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept      bytes.Buffer
	limit     int
	overflown bool
	// full is called, if set, when there is more.
	full func()
}

// Write accepts everything, so that the writer continues until it is ended.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.kept.Len()
	if len(p) <= room {
		return b.kept.Write(p)
	}
	b.kept.Write(p[:room])
	if b.overflown = true; b.full != nil {
		b.full()
	}
	return len(p), nil
}
