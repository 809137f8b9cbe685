// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const recordSuffix = ".process.json"

// record lets another command find a process.
type record struct {
	PID int `json:"pid"`
	// Birth is birthOf at the start.
	Birth string   `json:"birth"`
	Path  string   `json:"path"`
	Args  []string `json:"args,omitempty"`
	Env   []string `json:"env,omitempty"`
}

// Processes finds every process recorded in dir or below it, running or not, so that a command can
// stop them without knowing what they are. They have no Ready, and outlive the caller if it starts
// them again.
func Processes(dir string) ([]*Process, error) {
	var found []*Process
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, isRecord := strings.CutSuffix(entry.Name(), recordSuffix)
		if !isRecord || entry.IsDir() {
			return nil
		}
		p, err := NewProcess(ProcessOptions{Name: name, Dir: filepath.Dir(path), Detached: true})
		if err != nil {
			return err
		}
		found = append(found, p)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("finding processes in %s: %w", dir, err)
	}
	return found, nil
}

func (p *Process) recordPath() string {
	return filepath.Join(p.options.Dir, p.options.Name+recordSuffix)
}

// adopt takes over the recorded process if it still runs.
func (p *Process) adopt() error {
	var rec record
	err := readJSON(p.recordPath(), &rec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the record of %s: %w", p.options.Name, err)
	}
	if p.options.Path == "" {
		p.options.Path, p.options.Args, p.options.Env = rec.Path, rec.Args, rec.Env
	}
	if r := (&run{pid: rec.PID, birth: rec.Birth, recorded: rec.Args}); rec.PID > 0 && r.alive() {
		p.run = r
	}
	return nil
}

func (p *Process) remember(r *run) error {
	return writeJSON(p.recordPath(), record{
		PID: r.pid, Birth: r.birth, Path: p.options.Path, Args: p.options.Args, Env: p.options.Env,
	})
}

func (p *Process) forget() error {
	if err := os.Remove(p.recordPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the record of %s: %w", p.options.Name, err)
	}
	return nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
