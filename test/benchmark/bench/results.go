// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// resultsFile is the machine-readable result in the folder of results, beside a chart of each group.
const resultsFile = "results.json"

// figure is a benchmark with its samples by unit.
type figure struct {
	// Name is that of the benchmark without its prefix Benchmark: Proxy/get/fleetgate.
	Name    string               `json:"name"`
	Machine string               `json:"machine"`
	Samples map[string][]float64 `json:"samples"`
}

// group is the name of the figure's benchmark function in lower case.
func (f figure) group() string {
	name, _, _ := strings.Cut(f.Name, "/")
	return strings.ToLower(name)
}

var resultLine = regexp.MustCompile(`(?m)^Benchmark(\S+)\s+\d+\s+(.+)$`)

// parse reads the output of go test -bench. Samples of the same benchmark follow each other.
func parse(output, machine string) ([]figure, error) {
	var figures []figure
	for _, line := range resultLine.FindAllStringSubmatch(output, -1) {
		name := strings.TrimSuffix(line[1], fmt.Sprintf("-%d", runtime.GOMAXPROCS(0)))
		at := slices.IndexFunc(figures, func(f figure) bool { return f.Name == name })
		if at < 0 {
			at = len(figures)
			figures = append(figures, figure{Name: name, Machine: machine, Samples: map[string][]float64{}})
		}
		fields := strings.Fields(line[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading the results of %s: %w", name, err)
			}
			figures[at].Samples[fields[i+1]] = append(figures[at].Samples[fields[i+1]], value)
		}
	}
	return figures, nil
}

// merge replaces the figures of measured groups, and keeps those of others.
func merge(before, measured []figure) []figure {
	groups := map[string]bool{}
	for _, f := range measured {
		groups[f.group()] = true
	}
	all := slices.DeleteFunc(slices.Clone(before), func(f figure) bool { return groups[f.group()] })
	all = append(all, measured...)
	slices.SortStableFunc(all, func(a, b figure) int { return strings.Compare(a.group(), b.group()) })
	return all
}

// load reads the results in a folder, which may have none.
func load(dir string) ([]figure, error) {
	text, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	var figures []figure
	if err := json.Unmarshal(text, &figures); err != nil {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	return figures, nil
}

// store adds measured figures to the results in a folder, and draws them.
func store(dir string, measured []figure) error {
	before, err := load(dir)
	if err != nil {
		return err
	}
	all := merge(before, measured)
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	files := charts(all)
	files[resultsFile] = string(text) + "\n"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("writing the results: %w", err)
		}
	}
	return nil
}
