// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// addChart packs the chart of a command with the digests of the images in its values.
func (p *plan) addChart(ctx context.Context, command string, digests map[string]string) error {
	folder, err := os.MkdirTemp("", "charts-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source := filepath.Join(folder, command)
	if err := os.CopyFS(source, os.DirFS(filepath.Join(p.charts, command))); err != nil {
		return err
	}
	file := filepath.Join(source, "values.yaml")
	values, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if values, err = pin(values, p.repository, digests); err != nil {
		return fmt.Errorf("writing digests into its values: %w", err)
	}
	if err := os.WriteFile(file, values, 0o644); err != nil {
		return err
	}
	if err := setTimes(source, p.created); err != nil {
		return err
	}
	said, err := exec.CommandContext(ctx, p.helm, "package", source, "--version", p.number(), "--app-version", p.version, "--destination", p.out).CombinedOutput()
	if err != nil {
		return fmt.Errorf("helm package: %w: %s", err, bytes.TrimSpace(said))
	}
	// The manifest in the registry has the archive's time.
	return os.Chtimes(p.path(command+"-"+p.number()+".tgz"), p.created, p.created)
}

// setTimes sets one time for all files of a folder, because helm writes times into the archive.
func setTimes(folder string, to time.Time) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, to, to)
	})
}

// pin writes repository and digest of images into the values of a chart. Each block of values with
// an image of ours has the lines `repository: .../<command>` and, further down, `digest: ""`. Other
// formats are rejected.
func pin(values []byte, repository string, digests map[string]string) ([]byte, error) {
	lines := strings.Split(string(values), "\n")
	found := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		from, ok := strings.CutPrefix(trimmed, "repository: ")
		if !ok {
			continue
		}
		command := from[strings.LastIndex(from, "/")+1:]
		digest, ours := digests[command]
		if !ours {
			continue
		}
		indent := line[:len(line)-len(trimmed)]
		at := i + 1
		for at < len(lines) && strings.HasPrefix(lines[at], indent) && lines[at] != indent+`digest: ""` {
			at++
		}
		if at == len(lines) || lines[at] != indent+`digest: ""` {
			return nil, fmt.Errorf("no empty digest below line %d, %q", i+1, trimmed)
		}
		lines[i] = indent + "repository: " + repository + "/" + command
		lines[at] = indent + "digest: " + digest
		found = true
	}
	if !found {
		return nil, errors.New("they name no image of ours")
	}
	return []byte(strings.Join(lines, "\n")), nil
}
