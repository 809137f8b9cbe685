// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxSimulatedBytes limits the total size of the files of a simulation; 10,000 members are about 30 MB.
const maxSimulatedBytes = 256 << 20

// ReadFiles reads files and folders; - is standard input. Of a folder, all .yaml, .yml and .json files
// are read.
func ReadFiles(names []string, stdin io.Reader) (*Input, error) {
	if len(names) == 0 {
		return nil, errors.New("nothing to simulate: name files or folders with --filename")
	}
	paths, err := expand(names)
	if err != nil {
		return nil, err
	}
	input, left := &Input{}, &io.LimitedReader{N: maxSimulatedBytes + 1}
	for _, path := range paths {
		if err := parse(input, path, stdin, left); err != nil {
			return nil, err
		}
	}
	return input, nil
}

// parse adds one file, within the limit of all files.
func parse(input *Input, path string, stdin io.Reader, left *io.LimitedReader) error {
	left.R = stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("reading --filename: %w", err)
		}
		defer func() { _ = file.Close() }() // It was only read.
		left.R = file
	}
	err := input.Parse(path, left)
	if left.N <= 0 {
		return fmt.Errorf("reading %s: the files have more than %d MiB together", path, maxSimulatedBytes>>20)
	}
	return err
}

// expand replaces folders by the manifests in and below them.
func expand(names []string) ([]string, error) {
	var paths []string
	for _, name := range names {
		if name == "-" {
			paths = append(paths, name)
			continue
		}
		found := 0
		err := filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if path == name && !entry.IsDir() || entry.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				found++
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading --filename: %w", err)
		}
		if found == 0 {
			return nil, fmt.Errorf("reading --filename: no .yaml, .yml or .json file is in %s", name)
		}
	}
	return paths, nil
}
