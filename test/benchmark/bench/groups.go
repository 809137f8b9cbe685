// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// all chooses every group.
const all = "all"

// groups are what can be asked for. The figures of a group are those of the
// benchmark function that is named after it, wherever it stands.
var groups = []string{"agent", "tunnel", "proxy", "fleetview", "scheduler", "placement", "scale", "ocmplacement", "works", "manifestworks", "admission", "authors", "membership", "managedclusters", "addons", "members", "plugin", "tokens"}

// chosen reads names of groups, with anything but letters between them.
func chosen(text string) ([]string, error) {
	names := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if len(names) == 0 || slices.Contains(names, all) {
		return groups, nil
	}
	for _, name := range names {
		if !slices.Contains(groups, name) {
			return nil, fmt.Errorf("there is no group %q: choose from %s, or %s", name, strings.Join(groups, ", "), all)
		}
	}
	return names, nil
}

// benchmarkOf is the name of a group's function.
func benchmarkOf(group string) string {
	return "Benchmark" + strings.ToUpper(group[:1]) + group[1:]
}

var benchmarkFunction = regexp.MustCompile(`(?m)^func (Benchmark[A-Z]\w*)\(\w+ \*testing\.B\)`)

// findBenchmarks returns the packages that hold a benchmark, by its name. It reads
// the files, since asking go would build every test of the module first.
func findBenchmarks(module fs.FS) (map[string][]string, error) {
	found := map[string][]string{}
	for _, dir := range []string{"pkg", "test"} {
		err := fs.WalkDir(module, dir, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			source, err := fs.ReadFile(module, file)
			if err != nil {
				return err
			}
			for _, match := range benchmarkFunction.FindAllSubmatch(source, -1) {
				name := string(match[1])
				found[name] = append(found[name], "./"+path.Dir(file))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// plan is what to run.
type plan struct {
	benchmarks, packages []string
	// without are the groups that have no figure.
	without []string
}

func planOf(wanted []string, found map[string][]string) plan {
	var p plan
	for _, group := range wanted {
		name := benchmarkOf(group)
		if len(found[name]) == 0 {
			p.without = append(p.without, group)
			continue
		}
		p.benchmarks = append(p.benchmarks, name)
		p.packages = append(p.packages, found[name]...)
	}
	slices.Sort(p.packages)
	p.packages = slices.Compact(p.packages)
	return p
}

// pattern matches the benchmarks of the plan and no other.
func (p plan) pattern() string { return "^(" + strings.Join(p.benchmarks, "|") + ")$" }

// sentence tells of the groups that have no figure.
func (p plan) sentence() string {
	if len(p.without) == 1 {
		return "The group " + p.without[0] + " has no benchmark yet."
	}
	last := len(p.without) - 1
	return "The groups " + strings.Join(p.without[:last], ", ") + " and " + p.without[last] + " have no benchmark yet."
}
