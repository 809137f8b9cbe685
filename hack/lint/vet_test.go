// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"regexp"
	"slices"
	"testing"
)

// TestNothingOfGoVetIsLeftOut compares with the go command that runs it, because a newer one can
// have more analyzers.
func TestNothingOfGoVetIsLeftOut(t *testing.T) {
	help, err := exec.Command("go", "tool", "vet", "help").Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs, ours []string
	for _, line := range regexp.MustCompile(`(?m)^    (\w+) +\w`).FindAllSubmatch(help, -1) {
		theirs = append(theirs, string(line[1]))
	}
	for _, analyzer := range vet {
		ours = append(ours, analyzer.Name)
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	if len(theirs) == 0 || !slices.Equal(theirs, ours) {
		t.Errorf("go vet runs %v, we run %v", theirs, ours)
	}
}
